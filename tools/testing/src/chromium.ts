// Drives Chromium by its debugging protocol. The tests of a group share a browser, because starting one takes seconds of processor
// time, and each test has pages with cookies of its own.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { beforeAll, onTestFinished } from 'vitest'
import { requiredProgram } from './required-programs.ts'

const FLAGS = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run']

export interface Page {
  open(url: string): Promise<void>
  /** Returns the value of an expression in the page, which may be a promise. */
  evaluate<T>(expression: string): Promise<T>
}

/**
 * Starts Chromium before the first test of the file or the group, and ends it after the last. Returns a function that opens an empty page
 * for the running test.
 */
export function sharedBrowser(): () => Promise<Page> {
  let send: Send | undefined
  beforeAll(async () => {
    const chromium = await requiredProgram('chromium')
    const profile = mkdtempSync(join(tmpdir(), 'bullpen-chromium-'))
    const flags = [...FLAGS, `--user-data-dir=${profile}`, '--remote-debugging-port=0', 'about:blank']
    const child = spawn(chromium, flags, { detached: true, stdio: ['ignore', 'ignore', 'pipe'] })
    const connection = await connect(await debuggingAddress(child))
    send = connection.send
    return async () => {
      connection.close()
      await endGroup(child)
      rmSync(profile, { recursive: true, force: true, maxRetries: 10 })
    }
  })
  return async () => {
    if (send === undefined) throw new Error('the browser has not been started')
    return openPage(send)
  }
}

async function openPage(send: Send): Promise<Page> {
  const { browserContextId } = await send('Target.createBrowserContext')
  onTestFinished(async () => void (await send('Target.disposeBrowserContext', { browserContextId })))
  const { targetId } = await send('Target.createTarget', { url: 'about:blank', browserContextId })
  const { sessionId } = await send('Target.attachToTarget', { targetId, flatten: true })
  return {
    async open(url) {
      await send('Page.navigate', { url }, sessionId)
    },
    async evaluate(expression) {
      const options = { expression, awaitPromise: true, returnByValue: true, userGesture: true }
      const { result, exceptionDetails } = await send('Runtime.evaluate', options, sessionId)
      if (exceptionDetails !== undefined) throw new Error(exceptionDetails.exception?.description ?? expression)
      return result.value
    },
  }
}

/** Chromium has several processes, which share the group of the first one. */
async function endGroup(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null) return
  const exit = once(child, 'exit')
  process.kill(-child.pid, 'SIGKILL')
  await exit
}

async function debuggingAddress({ stderr }: ChildProcess): Promise<string> {
  if (stderr === null) throw new Error('the browser has no standard error')
  for await (const line of createInterface(stderr)) {
    const [, address] = /DevTools listening on (ws:\S+)/.exec(line) ?? []
    if (address !== undefined) return address
  }
  throw new Error('the browser has ended')
}

// biome-ignore lint/suspicious/noExplicitAny: the replies have a shape for each method.
type Send = (method: string, params?: object, sessionId?: string) => Promise<any>

interface Reply {
  readonly error?: { readonly message: string }
  readonly result?: unknown
}

async function connect(address: string): Promise<{ readonly send: Send; close(): void }> {
  const socket = new WebSocket(address)
  const waiting = new Map<number, (reply: Reply) => void>()
  socket.addEventListener('message', ({ data }) => {
    const reply = JSON.parse(String(data))
    waiting.get(reply.id)?.(reply)
  })
  socket.addEventListener('close', () => {
    for (const settle of waiting.values()) settle({ error: { message: 'the browser has ended' } })
  })
  await once(socket, 'open')
  let last = 0
  return {
    send(method, params = {}, sessionId) {
      const id = ++last
      const replied = new Promise((resolve, reject) => {
        waiting.set(id, ({ error, result }) => {
          waiting.delete(id)
          if (error === undefined) resolve(result)
          else reject(new Error(`${method}: ${error.message}`))
        })
      })
      socket.send(JSON.stringify({ id, method, params, sessionId }))
      return replied
    },
    close: () => socket.close(),
  }
}
