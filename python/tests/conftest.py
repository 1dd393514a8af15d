"""Scripts under seeds/ are run by test_seeds.py, not collected."""

collect_ignore_glob = ["seeds/*"]
