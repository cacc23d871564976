// Tests what a worker process logs when its connections become silent.
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { eventually, faultProxy } from '@bullpen/testkit'
import { expect, inject, onTestFinished, test } from 'vitest'

const FIXTURE = fileURLToPath(import.meta.resolve('./silent-redis.fixture.ts'))

function startWorker(url: string) {
  const child = spawn(process.execPath, [FIXTURE, url, `t-${randomUUID().slice(0, 8)}`])
  const ended = once(child, 'exit')
  onTestFinished(async () => {
    child.kill()
    await ended
  })
  let output = ''
  child.stdout.on('data', (chunk) => (output += chunk))
  const lines = () =>
    output
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as { level: string; msg: string })
  return {
    isRunning: () => output.includes('pool running'),
    aboutRedis: () =>
      lines()
        .filter((line) => 'redis' in line && !('check' in line))
        .map(({ level, msg }) => `${level} ${msg}`),
    /** What else is wrong. A busy machine may hold a process up, which the process then reports. */
    otherWarnings: () =>
      lines().filter(
        (line) =>
          line.level !== 'info' && !('check' in line) && !('redis' in line) && !/^event loop|clock/.test(line.msg),
      ),
  }
}

test('an idle worker whose connections become silent logs one line at the loss and one at the return', async () => {
  const proxy = await faultProxy(inject('redisUrl'))
  onTestFinished(() => proxy.close())
  const { isRunning, aboutRedis, otherWarnings } = startWorker(proxy.url)
  await eventually(isRunning)
  for (let losses = 1; losses <= 2; losses++) {
    expect(proxy.silence()).toBeGreaterThan(5)
    await eventually(() => aboutRedis().length >= 2 * losses)
    const each = ['warn redis connection lost', 'info redis connection restored']
    expect(aboutRedis()).toEqual(Array.from({ length: losses }, () => each).flat())
    expect(otherWarnings()).toEqual([])
  }
})
