// Drives a page in Chromium by its debugging protocol.
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { startChromium } from '@bullpen/testing'
import { onTestFinished } from 'vitest'

export interface Page {
  open(url: string): Promise<void>
  /** Returns the value of an expression in the page, which may be a promise. */
  evaluate<T>(expression: string): Promise<T>
}

/** Starts Chromium with an empty page. */
export async function openBrowser(program: string): Promise<Page> {
  const child = startChromium(program, ['--remote-debugging-port=0', 'about:blank'], ['ignore', 'ignore', 'pipe'])
  const send = await connect(await debuggingAddress(child))
  const { targetInfos } = await send('Target.getTargets')
  const { targetId } = targetInfos.find(({ type }: { type: string }) => type === 'page')
  const { sessionId } = await send('Target.attachToTarget', { targetId, flatten: true })
  const ask = (method: string, params: object = {}) => send(method, params, sessionId)
  return {
    async open(url) {
      await ask('Page.navigate', { url })
    },
    async evaluate(expression) {
      const { result, exceptionDetails } = await ask('Runtime.evaluate', {
        ...{ expression, awaitPromise: true, returnByValue: true, userGesture: true },
      })
      if (exceptionDetails !== undefined) throw new Error(exceptionDetails.exception?.description ?? expression)
      return result.value
    },
  }
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

async function connect(address: string): Promise<Send> {
  const socket = new WebSocket(address)
  const waiting = new Map<number, (reply: { error?: { message: string }; result?: unknown }) => void>()
  socket.addEventListener('message', ({ data }) => {
    const reply = JSON.parse(String(data))
    waiting.get(reply.id)?.(reply)
  })
  await once(socket, 'open')
  onTestFinished(() => socket.close())
  let last = 0
  return (method, params = {}, sessionId) => {
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
  }
}
