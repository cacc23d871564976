// Tests the API as a process: how it starts, and how it ends.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { Accepted } from '@bullpen/contract'
import { programEnv } from '@bullpen/testing'
import { describe, expect, inject, onTestFinished, test, vi } from 'vitest'

const KEY = 'process-key-0123456789'
const WITHIN = { timeout: 120_000, interval: 20 }
const MAIN = new URL('./main.ts', import.meta.url).pathname

function run(env: Record<string, string>, args: readonly string[] = []) {
  const child: ChildProcess = spawn(process.execPath, [MAIN, ...args], { env: programEnv(env) })
  let output = ''
  let errors = ''
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', (text) => (output += text))
  child.stderr?.on('data', (text) => (errors += text))
  const exited = once(child, 'exit').then(([code]) => code as number | null)
  onTestFinished(() => void child.kill('SIGKILL'))
  return { child, exited, output: () => output, errors: () => errors }
}

async function started() {
  const env = {
    REDIS_URL: inject('redisUrl'),
    BULLPEN_API_KEYS: KEY,
    BULLPEN_API_PORT: '0',
    BULLPEN_API_METRICS_PORT: '0',
    BULLPEN_NAMESPACE: `main-${process.pid}`,
  }
  const api = run(env)
  const url = await vi.waitUntil(() => /"url":"([^"]+)"/.exec(api.output())?.[1], WITHIN)
  return { ...api, url }
}

describe('a signalled process', () => {
  test('answers long polls and exits with 0', async () => {
    const { child, exited, url, output } = await started()
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ task: 'math.factorial', input: { n: 5 } })
    const { links } = (await (await fetch(`${url}/v1/tasks`, { method: 'POST', headers, body })).json()) as Accepted
    const answer = fetch(`${url}${links.self}?wait=30`, { headers })
    // Answered after the long poll has arrived, on another connection.
    await (await fetch(`${url}/readyz`)).text()
    child.kill('SIGTERM')
    expect(await (await answer).json()).toMatchObject({ status: 'waiting' })
    expect(await exited).toBe(0)
    expect(output()).not.toContain(KEY)
  })

  test('exits with 1 at the second signal, without waiting for incomplete requests', async () => {
    const { child, exited, url, output } = await started()
    const socket = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => {})
    socket.write('POST /v1/tasks HTTP/1.1\r\nHost: x\r\n')
    await (await fetch(`${url}/readyz`)).text()
    child.kill('SIGTERM')
    await vi.waitUntil(() => output().includes('API stopping'), WITHIN)
    child.kill('SIGINT')
    expect(await exited).toBe(1)
  })
})

describe('a start that fails', () => {
  test.each([
    ['without keys', {}, [], /invalid configuration: keys \(BULLPEN_API_KEYS\)/],
    ['with a misspelt variable', { BULLPEN_API_KEY: KEY }, [], /did you mean BULLPEN_API_KEYS\?/],
    [
      'with a misspelt flag',
      { BULLPEN_API_KEYS: KEY },
      ['--prot', '1'],
      /--prot is not a setting; did you mean --port\?/,
    ],
  ])('%s exits with 2, and names the setting', async (_name, env, args, message) => {
    const { exited, output } = run(env, args)
    expect(await exited).toBe(2)
    expect(output()).toMatch(message)
    expect(output()).not.toContain('    at ')
  })

  test('because a port is in use exits with 2 and one line', async () => {
    const { url } = await started()
    const { port } = new URL(url)
    const { exited, output } = run({
      REDIS_URL: inject('redisUrl'),
      BULLPEN_API_KEYS: KEY,
      BULLPEN_API_PORT: port,
      BULLPEN_API_METRICS_PORT: '0',
      // Warnings about the settings of this Redis are lines of their own.
      BULLPEN_LOG_LEVEL: 'error',
    })
    expect(await exited).toBe(2)
    expect(output()).toBe(
      `bullpen-api: cannot listen on 127.0.0.1:${port}: the port is already in use; set config.port or BULLPEN_API_PORT to another port, or to 0 to pick any free port\n`,
    )
  })
})

test('a process without Redis says that it listens, and that it is ready once Redis answers', async () => {
  const sockets = new Set<Socket>()
  const redis = createServer((socket) => {
    const { hostname, port } = new URL(inject('redisUrl'))
    const upstream = connect(Number(port), hostname)
    for (const each of [socket, upstream]) sockets.add(each.on('error', () => {}))
    socket.pipe(upstream).pipe(socket)
  })
  const listenOn = (port: number) => once(redis.listen(port, '127.0.0.1'), 'listening')
  await listenOn(0)
  const { port } = redis.address() as AddressInfo
  await once(redis.close(), 'close')
  const { child, exited, output } = run({
    REDIS_URL: `redis://127.0.0.1:${port}`,
    BULLPEN_API_KEYS: KEY,
    BULLPEN_API_PORT: '0',
    BULLPEN_API_METRICS_PORT: '0',
    BULLPEN_NAMESPACE: `main-${process.pid}`,
  })
  const url = await vi.waitUntil(() => /"url":"([^"]+)".*API listening/.exec(output())?.[1], WITHIN)
  expect((await fetch(`${url}/readyz`)).status).toBe(503)
  expect(output()).not.toContain('API ready')
  await listenOn(port)
  await vi.waitUntil(() => output().includes('API ready'), WITHIN)
  expect((await fetch(`${url}/readyz`)).status).toBe(200)
  child.kill('SIGTERM')
  expect(await exited).toBe(0)
  for (const each of sockets) each.destroy()
  await once(redis.close(), 'close')
})

test('the log of a development API does not contain its key', async () => {
  const key = 'development-key-0123456789'
  const { child, exited, output } = run({
    REDIS_URL: inject('redisUrl'),
    BULLPEN_ENV: 'development',
    BULLPEN_NAMESPACE: `main-${process.pid}`,
    BULLPEN_API_DEV_KEY: key,
    BULLPEN_API_PORT: '0',
    BULLPEN_API_METRICS_PORT: '0',
    BULLPEN_LOG_LEVEL: 'debug',
  })
  await vi.waitUntil(() => output().includes('API ready'), WITHIN)
  child.kill('SIGTERM')
  expect(await exited).toBe(0)
  expect(output()).not.toContain(key)
})

test('a development API without a key prints the key that it generates on standard error, and does not log it', async () => {
  const { child, exited, output, errors } = run({
    REDIS_URL: inject('redisUrl'),
    BULLPEN_ENV: 'development',
    BULLPEN_NAMESPACE: `main-${process.pid}`,
    BULLPEN_API_PORT: '0',
    BULLPEN_API_METRICS_PORT: '0',
    BULLPEN_LOG_LEVEL: 'debug',
  })
  const link = await vi.waitUntil(() => / board with this key, open (\S+)\n/.exec(errors())?.[1], WITHIN)
  const [, key = expect.fail()] = /^bullpen-api: generated the API key ([\w-]{32}), /m.exec(errors()) ?? []
  const { origin, searchParams } = new URL(link)
  expect(searchParams.get('key')).toBe(key)
  const headers = { authorization: `Bearer ${key}` }
  expect((await fetch(`${origin}/v1/fleet`, { headers })).status).toBe(200)
  expect((await fetch(link, { redirect: 'manual' })).status).toBe(303)
  child.kill('SIGTERM')
  expect(await exited).toBe(0)
  const log = output()
    .split('\n')
    .filter((line) => line.startsWith('{'))
  expect(log.join('\n')).toContain('API ready')
  expect(log.join('\n')).not.toContain(key)
})

test('a production API prints nothing on standard error', async () => {
  const { child, exited, errors } = await started()
  child.kill('SIGTERM')
  expect(await exited).toBe(0)
  expect(errors()).toBe('')
})
