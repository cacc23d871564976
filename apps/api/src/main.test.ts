// Tests the API as a process: what it says at its start, and how it ends.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import type { Accepted } from '@bullpen/contract'
import { describe, expect, inject, onTestFinished, test, vi } from 'vitest'

const KEY = 'process-key-0123456789'
const WITHIN = { timeout: 10_000, interval: 20 }
const MAIN = new URL('./main.ts', import.meta.url).pathname

function run(env: Record<string, string>, args: readonly string[] = []) {
  const { PATH } = process.env
  const child: ChildProcess = spawn(process.execPath, [MAIN, ...args], { env: { ...(PATH && { PATH }), ...env } })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', (text) => (output += text))
  const exited = once(child, 'exit').then(([code]) => code as number | null)
  onTestFinished(() => void child.kill('SIGKILL'))
  return { child, exited, output: () => output }
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

describe('a process', () => {
  test('that is told to stop answers whoever waits and exits with 0', async () => {
    const { child, exited, url, output } = await started()
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ task: 'math.factorial', input: { n: 5 } })
    const { links } = (await (await fetch(`${url}/v1/tasks`, { method: 'POST', headers, body })).json()) as Accepted
    const answer = fetch(`${url}${links.wait}`, { headers })
    // Answered after the look-up that waits has come in, on a connection of its own.
    await (await fetch(`${url}/readyz`)).text()
    child.kill('SIGTERM')
    expect(await (await answer).json()).toMatchObject({ status: 'waiting' })
    expect(await exited).toBe(0)
    expect(output()).not.toContain(KEY)
  })

  test('that is told twice does not wait for a request that does not end', async () => {
    const { child, exited, url, output } = await started()
    const socket = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => {})
    socket.write('POST /v1/tasks HTTP/1.1\r\nHost: x\r\n')
    await (await fetch(`${url}/readyz`)).text()
    child.kill('SIGTERM')
    await vi.waitUntil(() => output().includes('the API is stopping'), WITHIN)
    child.kill('SIGINT')
    expect(await exited).toBe(1)
  })
})

describe('a configuration', () => {
  test.each([
    ['without keys', {}, [], /there are no keys \(BULLPEN_API_KEYS\)/],
    ['with a misspelt variable', { BULLPEN_API_KEY: KEY }, [], /did you mean BULLPEN_API_KEYS\?/],
    [
      'with a misspelt flag',
      { BULLPEN_API_KEYS: KEY },
      ['--prot', '1'],
      /--prot is not a setting; did you mean --port\?/,
    ],
  ])('%s stops the start and says why', async (_name, env, args, message) => {
    const { exited, output } = run(env, args)
    expect(await exited).toBe(2)
    expect(output()).toMatch(message)
    expect(output()).not.toContain('    at ')
  })
})
