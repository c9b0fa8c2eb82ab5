STUB = 1


def empty_caches():
    pass


def run(call, arguments, on):
    pass


def summary(seconds):
    pass
