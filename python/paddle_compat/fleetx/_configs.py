"""Settings of a training script from its command line."""

import argparse


def parse_train_configs() -> argparse.Namespace:
    """--lr, --momentum, --beta1, --beta2, --batch_size, --epsilon; other arguments are the script's."""
    parser = argparse.ArgumentParser(description="training settings", add_help=False)
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--beta1", type=float, default=0.9)
    parser.add_argument("--beta2", type=float, default=0.997)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--epsilon", type=float, default=1e-9)
    parser.add_argument("--download_config", type=str, default=None)
    configs = parser.parse_known_args()[0]
    if configs.download_config is not None:
        parser.error("--download_config: nothing is downloaded; data come from a local folder")
    return configs
