import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runTask } from '@bullpen/testkit'
import { welcome } from './catalogue.ts'
import handler from './welcome.ts'

test('a busy mail server delays the mail by 2 s', async () => {
  const run = await runTask(welcome, handler, { to: 'busy@example.com', name: 'Ann' })
  assert.equal(run.status, 'completed')
  assert.equal(run.attempts[0]?.code, 'server_busy')
  assert.equal(run.elapsedMs, 2_000)
})

test('an unknown domain is not retried', async () => {
  const run = await runTask(welcome, handler, { to: 'ann@nowhere.invalid' })
  assert.equal(run.status, 'dead')
  assert.equal(run.attempts.length, 1)
})
