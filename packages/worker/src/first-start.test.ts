// Tests programs like those in the README: what a failed start looks like, and two workers on one machine.
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { programEnv } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { openProbes } from './probes.ts'

const PROGRAM = new URL('./first-start.fixture.ts', import.meta.url).pathname

function run(env: Readonly<Record<string, string>>) {
  const redis = { REDIS_URL: inject('redisUrl'), BULLPEN_NAMESPACE: `t-${randomUUID().slice(0, 12)}` }
  const child = spawn(process.execPath, [PROGRAM], { env: programEnv({ ...redis, ...env }) })
  let output = ''
  child.stdout.on('data', (chunk) => (output += chunk))
  child.stderr.on('data', (chunk) => (output += chunk))
  const exited = new Promise<number | null>((resolve) => child.on('close', (code) => resolve(code)))
  onTestFinished(() => void child.kill('SIGKILL'))
  return { child, exited, output: () => output }
}

async function takenPort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

describe('a worker that fails to start', () => {
  it.each(['start', 'online'])('exits with 2 and one line when a resource does not open (%s)', async (mode) => {
    const worker = run({ BULLPEN_WORKER_PORT: '0', FIRST_RESOURCE: 'no database', FIRST_MODE: mode })
    expect(await worker.exited).toBe(2)
    const lines = worker.output().trim().split('\n')
    expect(lines).toHaveLength(1)
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ level: 'error', msg: 'worker did not start: no database' })
    expect(worker.output()).not.toContain('stack')
  })

  it.each(['start', 'online'])('names the variable when a port that it set is taken (%s)', async (mode) => {
    const port = await takenPort()
    const worker = run({ BULLPEN_WORKER_PORT: String(port), FIRST_MODE: mode })
    expect(await worker.exited).toBe(2)
    expect(worker.output().trim().split('\n')).toHaveLength(1)
    expect(worker.output()).toContain(
      `worker did not start: probes and metrics can't listen on 127.0.0.1:${port}: the port is already in use; set BULLPEN_WORKER_PORT to another port, or to 0 for a free one`,
    )
  })

  it('names the setting when a port that was set in code is taken', async () => {
    const port = await takenPort()
    const worker = run({ FIRST_PORT: String(port) })
    expect(await worker.exited).toBe(2)
    expect(worker.output()).toContain('set config.port to another port')
  })

  it('exits with 2 and one line when a setting is wrong', async () => {
    const worker = run({ BULLPEN_WORKER_GRACE: '5' })
    expect(await worker.exited).toBe(2)
    expect(worker.output()).toMatch(
      /^invalid configuration: BULLPEN_WORKER_GRACE is "5"; expected a duration such as "5s"\n/,
    )
    expect(worker.output()).not.toContain('    at ')
  })
})

describe('two workers on one machine', () => {
  it('both start with the default settings', async () => {
    const workers = [run({}), run({})]
    for (const worker of workers) await eventually(() => worker.output().includes('worker ready'))
    const urls = workers.map((worker) => /"url":"([^"]+)"[^\n]*worker ready/.exec(worker.output())?.[1])
    expect(new Set(urls).size).toBe(2)
    for (const worker of workers) {
      worker.child.kill('SIGTERM')
      expect(await worker.exited).toBe(0)
    }
  })

  it('log which port replaces a default that is taken', async () => {
    const port = await takenPort()
    const lines: unknown[] = []
    const log = {
      debug() {},
      info() {},
      warn: (fields: object, msg: string) => void lines.push({ ...fields, msg }),
      error() {},
    }
    const answers = { notReady: () => undefined, exposition: async () => ({ contentType: 'text/plain', text: '' }) }
    const probes = await openProbes(answers, { host: '127.0.0.1', port, portOrigin: undefined }, log)
    expect((await fetch(`${probes.url}/livez`)).status).toBe(200)
    await probes.close()
    expect(lines).toEqual([
      { url: probes.url, msg: `port ${port} is already in use; probes and metrics listen on a free port` },
    ])
  })
})
