// Preloaded into supervised processes: when the supervisor dies, the process drains and exits.
import { isMainThread } from 'node:worker_threads'

if (isMainThread && process.connected) {
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
  process.channel?.unref() // this channel alone must not keep the process alive
}
