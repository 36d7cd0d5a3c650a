"""The parts of bench/driver.py: machine (what it counters and reads), peers (building and calling
them), workloads (one process, one number), services (sider and idling), table (what is printed)."""
