// Preloaded into what `supervise` starts: when the supervisor has been killed, the process drains and ends by itself.
import { isMainThread } from 'node:worker_threads'

if (isMainThread && process.connected) {
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
  process.channel?.unref() // the leash alone must not keep a process alive
}
