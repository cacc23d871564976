// Preloaded into a process, as a supervisor's module may be: unreferences the channel, which then does not keep the process alive.
process.channel?.unref()
