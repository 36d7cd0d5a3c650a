"""The rules of tools/check_style: graph (who includes whom), text (how a file reads), docs."""
