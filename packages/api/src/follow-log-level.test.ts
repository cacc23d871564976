// Tests that API processes follow the log level that a command has set for all processes.
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { programEnv } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { expect, inject, it, onTestFinished } from 'vitest'

const FIXTURE = new URL('./log-level-api.fixture.ts', import.meta.url).pathname

interface Line {
  readonly url?: string
  readonly level?: string
  readonly msg?: string
  readonly by?: string
}

async function startApi(namespace: string, key: string) {
  const child = spawn(process.execPath, [FIXTURE, inject('redisUrl'), namespace, key], {
    env: programEnv(),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let text = ''
  child.stdout.on('data', (chunk) => {
    text += chunk
  })
  const lines = (): readonly Line[] =>
    text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Line)
  const url = await eventually(
    () => lines().find((line) => line.url?.startsWith('http') && line.msg === undefined)?.url,
  )
  const call = (path: string, body?: object) =>
    fetch(`${url}${path}`, {
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
    })
  const said = (msg: string) => eventually(() => lines().find((line) => line.msg === msg))
  return { lines, call, said }
}

it('API processes follow a level for all processes, even if they start later, until it is reset', async () => {
  const [namespace, key] = [`t-${randomUUID().slice(0, 12)}`, randomUUID()]
  const first = await startApi(namespace, key)
  await first.call('/v1/queues')
  expect(first.lines().filter(({ level }) => level === 'debug')).toEqual([])
  const sent = await first.call('/v1/commands', { action: 'log_level', level: 'debug', for: '1h', by: 'ann' })
  expect(sent.status).toBe(200)
  const later = await startApi(namespace, key)
  for (const api of [first, later]) {
    expect((await api.said('log level of all processes changed')).by).toContain('ann')
    await api.call('/v1/queues')
    await eventually(() => api.lines().some(({ level }) => level === 'debug'))
  }
  await first.call('/v1/commands', { action: 'log_level', level: 'configured' })
  for (const api of [first, later]) await api.said('log level of all processes reset')
  const before = later.lines().filter(({ level }) => level === 'debug').length
  await later.call('/v1/queues')
  // The audit line of this command is written after the line of the request before it would be.
  await later.call('/v1/commands', { action: 'log_level', level: 'configured' })
  await later.said('fleet command sent')
  expect(later.lines().filter(({ level }) => level === 'debug')).toHaveLength(before)
})
