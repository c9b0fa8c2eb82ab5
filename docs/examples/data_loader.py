"""A DataLoader with two workers: one call takes everything from it. Its workers are processes, so their time counts, too."""

import torch


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, at):
        return torch.full((100,), float(at)) ** 2


def inputs():
    return (Squares(),)


def loader(data):
    return torch.utils.data.DataLoader(data, batch_size=8, num_workers=2)


iterators = {"loader": loader}
check = None
threads = 2
METRICS = ("time", "cpu_time")
WARM_UP_CALLS = 1
