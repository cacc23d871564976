import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineHandler, defineTask, type TaskContext, TaskError } from '@bullpen/contract'
import { runTask } from '@bullpen/testkit'
import { z } from 'zod'

// This is the code under test. In a project, the test imports it from other files.
const invoice = defineTask({
  name: 'invoice.send',
  queue: 'invoices',
  input: z.object({ number: z.int(), to: z.email() }),
  output: z.object({ delivered: z.string() }),
  timeout: '30s',
  retry: { maxAttempts: 5, backoff: { initialDelay: '1m' } },
})

interface Resources {
  readonly mailer: { send(to: string, subject: string, signal: AbortSignal): Promise<string> }
}

type Context = TaskContext<typeof invoice, Resources>
const handler = defineHandler(invoice, import.meta.url, async ({ input, resources, signal }: Context) => ({
  delivered: await resources.mailer.send(input.to, `Invoice ${input.number}`, signal),
}))

const input = { number: 7, to: 'ann@example.com' }

test('an invoice is delivered', async () => {
  const resources: Resources = { mailer: { send: async (to, subject) => `${subject} to ${to}` } }
  const run = await runTask(invoice, handler, input, { resources })
  assert.deepEqual(run.output, { delivered: 'Invoice 7 to ann@example.com' })
})

test('an invoice is delivered although the mail server is down for two attempts', async () => {
  let calls = 0
  const send = async () => {
    if (++calls < 3) throw new TaskError('mail_down', 'connection refused')
    return 'delivered'
  }
  const run = await runTask(invoice, handler, input, { resources: { mailer: { send } } })
  assert.equal(run.status, 'completed')
  assert.deepEqual(
    run.attempts.map(({ state, code }) => code ?? state),
    ['mail_down', 'mail_down', 'DONE_SUCCESS'],
  )
  assert.equal(run.elapsedMs, 60_000 + 120_000) // the two waits, which the fake clock skipped
})

test('an invoice whose mail server hangs is timed out, and the request is aborted', async () => {
  const send = (_to: string, _subject: string, signal: AbortSignal) =>
    new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  const run = await runTask(invoice, handler, input, { resources: { mailer: { send } }, maxAttempts: 1 })
  assert.equal(run.status, 'dead')
  assert.equal(run.attempts[0]?.reason, 'run_timeout')
  assert.deepEqual(run.late, []) // the handler ended when it was signalled
})
