// A TCP proxy in front of Redis that acts when a client sends one of the given scripts: either before Redis receives the script,
// or after Redis has run it but before the client receives the reply.
import { createHash } from 'node:crypto'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { ScriptVerdict } from '../../store/attempt-end.ts'
import { endAndStartScript } from '../../store/scripts.ts'

export interface Fault {
  /** The texts of the scripts. */
  readonly scripts: readonly string[]
  /** An argument that one of the scripts is sent with. */
  readonly argument?: string
  readonly when: 'before' | 'after'
  /** Called once. What is under way on the connection is then dropped, and the connection is closed. */
  readonly onFault: () => void
}

/** The end of an attempt with this verdict (../../store/lua/includes/end/attempt-end.lua). */
export const endAs = (verdict: ScriptVerdict): Pick<Fault, 'scripts' | 'argument'> => ({
  scripts: [endAndStartScript.lua],
  argument: verdict,
})

export interface ScriptProxy {
  readonly url: string
  /** Applies to the next of the scripts. */
  arm(fault: Fault): void
  /** Closes the proxy at the next of the scripts, so that its client can never finish, and resolves then. */
  closeAt(fault: Omit<Fault, 'onFault'>): Promise<void>
  close(): void
}

export async function scriptProxy(targetUrl: string): Promise<ScriptProxy> {
  const { hostname, port } = new URL(targetUrl)
  const sockets = new Set<Socket>()
  let fault: Fault | undefined

  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname)
    let isWaitingForAnswer = false
    /** What the client has sent since a fault was set. The text of a script may be longer than one chunk. */
    let sent = Buffer.alloc(0)
    const fail = (found: Fault): void => {
      found.onFault()
      client.destroy()
      upstream.destroy()
    }
    client.on('data', (chunk) => {
      const found = fault
      sent = found === undefined ? Buffer.alloc(0) : Buffer.concat([sent, chunk])
      const isFound = found?.scripts.some((lua) => {
        const at = [sent.indexOf(sha(lua)), sent.indexOf(lua)].find((index) => index >= 0)
        return at !== undefined && (found.argument === undefined || sent.includes(`\r\n${found.argument}\r\n`, at))
      })
      if (found === undefined || !isFound) {
        upstream.write(chunk)
        return
      }
      fault = undefined
      if (found.when === 'before') fail(found)
      else {
        isWaitingForAnswer = true
        upstream.once('data', () => fail(found))
        upstream.write(chunk)
      }
    })
    upstream.on('data', (chunk) => {
      if (!isWaitingForAnswer) client.write(chunk)
    })
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(one)
      one.on('error', () => other.destroy())
      one.on('close', () => {
        sockets.delete(one)
        other.destroy()
      })
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const close = (): void => {
    for (const socket of sockets) socket.destroy()
    server.close()
  }
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    arm(next) {
      fault = next
    },
    closeAt: (scripts) =>
      new Promise((resolve) => {
        fault = {
          ...scripts,
          onFault() {
            close()
            resolve()
          },
        }
      }),
    close,
  }
}

function sha(lua: string): string {
  return createHash('sha1').update(lua).digest('hex')
}
