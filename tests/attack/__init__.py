"""The attack suite: is anything lost, let in or deleted when the program is killed, cut off, lied to or told nonsense?"""
