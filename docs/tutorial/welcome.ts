import { defineHandler, TaskError } from '@bullpen/contract'
import { welcome } from './catalogue.ts'

export default defineHandler(welcome, import.meta.url, async ({ input, attempt, signal }) => {
  if (input.to.endsWith('.invalid')) {
    throw new TaskError('no_such_domain', `${input.to} cannot be reached`, { retryable: false })
  }
  if (input.to.startsWith('busy') && attempt === 1) {
    throw new TaskError('server_busy', 'the mail server is busy', { retryAfter: '2s' })
  }
  signal.throwIfAborted() // also pass the signal to fetch and timers: it aborts on a timeout or a drain
  return { greeting: `Hello, ${input.name}` }
})
