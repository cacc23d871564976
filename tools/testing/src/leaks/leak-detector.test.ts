// Tests that the detector finds each kind of leak, reports where it was created, and reports nothing when everything was closed.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { watch } from 'node:fs'
import { connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { Worker } from 'node:worker_threads'
import { eventually } from '@bullpen/testkit'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { watchForLeaks } from './leak-detector.ts'

interface Leak {
  readonly kind: string
  /** Opens it; what it returns closes it. */
  open(): Promise<() => unknown> | (() => unknown)
}

async function listen(): Promise<Server> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server
}

const LEAKS: readonly Leak[] = [
  {
    kind: 'timer',
    open() {
      const timer = setTimeout(() => {}, 60_000)
      return () => clearTimeout(timer)
    },
  },
  {
    kind: 'timer',
    open() {
      const interval = setInterval(() => {}, 60_000).unref()
      return () => clearInterval(interval)
    },
  },
  {
    kind: 'server',
    async open() {
      const server = await listen()
      return () => server.close()
    },
  },
  {
    kind: 'socket',
    async open() {
      const server = await listen()
      const socket = connect(Object(server.address()).port, '127.0.0.1')
      await once(socket, 'connect')
      return () => {
        socket.destroy()
        server.close()
      }
    },
  },
  {
    kind: 'worker thread',
    async open() {
      const thread = new Worker('setInterval(() => {}, 60_000)', { eval: true })
      await once(thread, 'online')
      return () => thread.terminate()
    },
  },
  {
    kind: 'child process',
    open() {
      const child = spawn(process.execPath, ['--eval', 'setInterval(() => {}, 60_000)'])
      return () => child.kill('SIGKILL')
    },
  },
  {
    kind: 'file watcher',
    open() {
      const watcher = watch(tmpdir(), () => {})
      return () => watcher.close()
    },
  },
  {
    kind: "listener of process 'SIGUSR2'",
    open() {
      const listener = (): void => {}
      process.on('SIGUSR2', listener)
      return () => process.off('SIGUSR2', listener)
    },
  },
  {
    kind: 'changed environment variable BULLPEN_TEST_LEAK',
    open() {
      vi.stubEnv('BULLPEN_TEST_LEAK', 'left behind')
      return () => vi.unstubAllEnvs()
    },
  },
  {
    kind: 'changed global setTimeout',
    open() {
      vi.useFakeTimers({ toFake: ['setTimeout'] })
      return () => vi.useRealTimers()
    },
  },
  {
    kind: "listener of process 'uncaughtException'",
    open() {
      const listener = (): void => {}
      process.on('uncaughtException', listener)
      return () => process.off('uncaughtException', listener)
    },
  },
]

function detector() {
  const watching = watchForLeaks()
  onTestFinished(() => watching.stop())
  return watching
}

describe('the leak detector', () => {
  it.each(LEAKS)('reports a $kind that is still open, and where it was created', async ({ kind, open }) => {
    const { leaks, expectNone } = detector()
    const close = await open()
    await expect(expectNone(0)).rejects.toThrow(`× ${kind}`)
    const found = leaks().find((leak) => leak.startsWith(kind))
    if (!kind.startsWith('changed')) {
      expect(found).toMatch(kind === 'server' ? /on port \d+/ : /leak-detector\.test\.ts:\d+:\d+/)
    }
    await close()
    await expectNone(10_000)
  })

  it('waits for what is closing', async () => {
    const { expectNone } = detector()
    const server = await listen()
    const socket = connect(Object(server.address()).port, '127.0.0.1')
    await once(socket, 'connect')
    // A server that closes waits for its connections.
    const closed = once(server.close(), 'close')
    const checked = expectNone(10_000)
    socket.end()
    await Promise.all([closed, checked])
  })

  it('ignores what was open before, and what has ended', async () => {
    const timer = setTimeout(() => {}, 60_000)
    const { leaks, expectNone } = detector()
    await new Promise<void>((resolve) => setTimeout(resolve, 1))
    await expectNone(10_000)
    clearTimeout(timer)
    expect(leaks()).toEqual([])
  })

  it('ignores AbortSignal.timeout(), which nothing can clear', async () => {
    const { expectNone } = detector()
    AbortSignal.timeout(60_000)
    await expectNone(0)
  })
})

it('each test file that leaves something open or changed fails, by the setup file that every test file loads', async () => {
  const vitest = new URL('../../../../node_modules/vitest/vitest.mjs', import.meta.url).pathname
  const config = new URL('./leaking.config.fixture.ts', import.meta.url).pathname
  const child = spawn(process.execPath, [vitest, 'run', '--config', config], { env: { ...process.env, NO_COLOR: '1' } })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
  const [code] = await once(child, 'close')
  expect(code).toBe(1)
  expect(output).toMatch(/1 × timer, created at \S*leaking-timer\.fixture\.ts:\d+/)
  expect(output).toMatch(/1 × changed environment variable BULLPEN_TEST_LEAK/)
  expect(output).toMatch(/2 passed/)
  await eventually(() => child.exitCode !== null)
})
