"""The parts of bench/driver.py: machine (what it counters and reads), peers (building and calling
them), workloads (one process, one number), services (sider and idling), figures (rounds become one),
targets (what they are to reach), table (what is printed), chart (what is drawn)."""
