// Tests the example worker as a process: its probes, its start without Redis, and its errors for invalid settings.
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { redis } from '@bullpen/bullmq'
import { createClient } from '@bullpen/client'
import { catalogue, filesDigest, mathPrimes } from '@bullpen/tasks'
import { freePort, privateRedis, spawnProgram } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { describe, expect, inject, it, onTestFinished } from 'vitest'

const MAIN = new URL('./main.ts', import.meta.url).pathname

const run = (args: readonly string[], env: Readonly<Record<string, string>>) => spawnProgram(MAIN, args, env)

describe('the example worker without Redis', () => {
  it('is not ready, exits with 0 on a signal, and works once Redis is reachable', async () => {
    const redis = await privateRedis()
    const start = () => run([], { REDIS_URL: redis.url, BULLPEN_WORKER_PORT: '0' })
    const first = start()
    await eventually(() => first.output().includes('redis not reachable'))
    first.child.kill('SIGTERM')
    expect(await first.exited).toBe(0)

    const port = await freePort()
    const second = run([], {
      REDIS_URL: redis.url,
      BULLPEN_WORKER_PORT: String(port),
    })
    const readiness = () => fetch(`http://127.0.0.1:${port}/readyz`).then(({ status }) => status)
    expect(await eventually(() => readiness().catch(() => undefined))).toBe(503)
    await redis.start()
    await eventually(async () => (await readiness()) === 200)
    await redis.crash()
    await eventually(async () => (await readiness()) === 503)
    await redis.start()
    await eventually(async () => (await readiness()) === 200)
    second.child.kill('SIGTERM')
    expect(await second.exited).toBe(0)
  })
})

describe('the example worker', () => {
  it('answers probes and metrics while it runs', async () => {
    const redis = { REDIS_URL: inject('redisUrl'), BULLPEN_NAMESPACE: `t-${randomUUID().slice(0, 12)}` }
    const worker = run([], { ...redis, BULLPEN_WORKER_PORT: '0' })
    const url = await eventually(() => /"url":"([^"]+)".*worker ready/.exec(worker.output())?.[1])
    expect((await fetch(`${url}/livez`)).status).toBe(200)
    expect((await fetch(`${url}/readyz`)).status).toBe(200)
    expect((await fetch(`${url}/elsewhere`)).status).toBe(404)
    expect((await fetch(`${url}/livez`, { method: 'POST' })).status).toBe(405)
    const metrics = await (await fetch(`${url}/metrics`)).text()
    expect(metrics).toContain('bullpen_pool_state{queue="cpu",state="BG_RUNNING"} 1')
    expect(metrics).toMatch(/^bullpen_clock_skew_seconds -?0/m)
    worker.child.kill('SIGTERM')
    expect(await worker.exited).toBe(0)
  })

  it('runs CPU-bound tasks in threads of their own, which know the name of its process', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'bullpen-threads-'))
    onTestFinished(() => rm(directory, { recursive: true }))
    const path = join(directory, 'a')
    await writeFile(path, 'a')
    const [redisUrl, namespace] = [inject('redisUrl'), `t-${randomUUID().slice(0, 12)}`]
    const worker = run([], {
      REDIS_URL: redisUrl,
      BULLPEN_NAMESPACE: namespace,
      BULLPEN_WORKER_PORT: '0',
      BULLPEN_WORKER_FILES_ROOTS: directory,
      BULLPEN_WORKER_POOL_SETTINGS: '{"files":{"isolation":"thread"}}',
    })
    const client = createClient({ transport: redis(redisUrl, { catalogue, namespace }) })
    onTestFinished(() => client.close())
    const count = await client.enqueue(mathPrimes, { below: 1_000 })
    const { primes, thread } = await count.result({ timeout: '2m' })
    expect(primes).toBe(168)
    expect(thread).toBeGreaterThan(0)
    const digest = await client.enqueue(filesDigest, { path })
    expect((await digest.result({ timeout: '2m' })).worker).toBe(`${hostname()}:${worker.child.pid}`)
    worker.child.kill('SIGTERM')
    expect(await worker.exited).toBe(0)
  })

  it('lists its settings with --help', async () => {
    const worker = run(['--help'], {})
    expect(await worker.exited).toBe(0)
    expect(worker.output()).toContain('--drain-timeout, BULLPEN_WORKER_DRAIN_TIMEOUT')
    expect(worker.output()).toContain('--files-roots, BULLPEN_WORKER_FILES_ROOTS')
  })

  it('refuses to start with invalid settings, and reports what each of them accepts', async () => {
    const worker = run(['--concurency', '3'], {
      REDIS_URL: 'localhost:6379',
      BULLPEN_WORKER_DRAIN_TIMEOUT: '20',
      BULLPEN_WORKER_FILES_ROOTS: 'data',
      BULLPEN_WORKER_POOLS: 'cpu',
      BULLPEN_WORKER_PORT: ' ',
    })
    expect(await worker.exited).toBe(2)
    const lines = worker.output().trimEnd().split('\n')
    expect(lines[0]).toBe('invalid configuration:')
    for (const message of [
      '--concurency is not a setting',
      'REDIS_URL is not valid; expected a URL such as redis:',
      'BULLPEN_WORKER_DRAIN_TIMEOUT is "20"; expected a duration such as "20s"',
      'BULLPEN_WORKER_FILES_ROOTS is "data"; expected absolute paths',
      'BULLPEN_WORKER_POOLS is "cpu"; expected each queue once with its concurrency',
      'BULLPEN_WORKER_PORT is " "; expected a whole number from 0 to 65535',
    ]) {
      expect(lines).toContainEqual(expect.stringContaining(`- ${message}`))
    }
    expect(lines.at(-1)).toBe('Run with --help to list all settings.')
    expect(worker.output()).not.toContain('    at ')
  })

  it.each([
    [{ BULLPEN_WORKER_DRAIN_TIMEOUT: '29s' }, /drainTimeout.*29s.*do not fit in terminationGrace/],
    [{ BULLPEN_WORKER_POOLS: 'cpu=4,fils=2' }, /queue 'fils'.*did you mean 'files'/],
    [{ BULLPEN_WORKER_PORT: '1', BULLPEN_WORKER_HOST: '192.0.2.1' }, /can't listen on 192\.0\.2\.1:1/],
    [{ BULLPEN_WORKER_FILES_ROOTS: '/nowhere/at/all' }, /nowhere/],
  ])('refuses to start with %j, and reports why', async (env, message) => {
    const worker = run([], env)
    expect(await worker.exited).toBe(2)
    expect(worker.output()).toMatch(message)
    expect(worker.output()).not.toContain('    at ')
  })
})
