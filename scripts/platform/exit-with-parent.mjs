// Preloaded into supervised processes, so that a process drains and exits when the supervisor dies.
import { isMainThread } from 'node:worker_threads'

if (isMainThread && process.connected) {
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
  process.channel?.unref() // this channel alone must not keep the process alive
}
