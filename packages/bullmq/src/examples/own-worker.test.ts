import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { programEnv } from '@bullpen/testing'
import { Queue } from 'bullmq'
import { expect, inject, it, onTestFinished } from 'vitest'
import { resultOf } from './result-of.fixture.ts'

it('the guide’s program runs a task and a job that is not a task yet, and ends on SIGTERM', async () => {
  const connection = { url: inject('redisUrl') }
  const queue = new Queue('email', { connection })
  const program = new URL('./own-worker.fixture.ts', import.meta.url).pathname
  const child = spawn(process.execPath, [program], {
    env: programEnv({ REDIS_URL: connection.url }),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exit = once(child, 'exit')
  let output = ''
  child.stdout.on('data', (text) => {
    output += text
  })
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await queue.obliterate({ force: true })
    await queue.close()
  })
  const task = await queue.add('email.welcome', { to: 'ann@example.com' })
  const old = await queue.add('email.farewell', { to: 'bob@example.com' })
  expect(await resultOf(task, { connection })).toEqual({ greeting: 'Hello, you' })
  expect(await resultOf(old, { connection })).toBe('done as always: email.farewell')
  child.kill('SIGTERM')
  expect(await exit).toEqual([0, null])
  expect(output).toMatch(/"task":"email.welcome".*"msg":"writing to ann@example.com"/)
})
