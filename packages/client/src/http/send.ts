// Sends requests: on Node with its own HTTP client, and elsewhere with `fetch`.
import { type NodeModules, nodeSend } from './node-send.ts'

export interface Outgoing {
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
  readonly signal: AbortSignal
}

/** A response that has arrived as a whole. The last three fields are those of `fetch`, and say whether it was a redirect. */
export interface HttpResponse {
  readonly status: number
  readonly ok: boolean
  readonly headers: { get(name: string): string | null }
  readonly text: string
  readonly type?: string
  readonly redirected?: boolean
  readonly url?: string
}

/** Rejects with the signal's reason if the signal aborts, and otherwise with an error that says why there is no response. */
export type Send = (address: URL, outgoing: Outgoing) => Promise<HttpResponse>

type Fetch = typeof globalThis.fetch

const ownFetch = globalThis.fetch

/** Returns the function that sends requests. `given` is the function that the caller wants to be used. */
export function createSend(given: Fetch | undefined): Send {
  const fetch = given ?? globalThis.fetch
  const viaFetch: Send = async (address, { body, ...outgoing }) => {
    const response = await fetch(address, { ...outgoing, ...(body !== undefined && { body }), redirect: 'manual' })
    const { status, ok, headers, type, redirected, url } = response
    return { status, ok, headers, type, redirected, url, text: await response.text() }
  }
  // A program or a test that has replaced `fetch` must see the requests.
  const node = given === undefined && fetch === ownFetch ? nodeModules() : undefined
  if (node === undefined) return viaFetch
  const [direct, isFetchChanged] = [nodeSend(node), fetchChanges(node)]
  return (address, outgoing) => (isFetchChanged() ? viaFetch : direct)(address, outgoing)
}

/** Returns undefined if this is not Node, or one without the function that returns a module. */
function nodeModules(): NodeModules | undefined {
  const { process, Bun, Deno } = globalThis as {
    readonly Bun?: unknown
    readonly Deno?: unknown
    readonly process?: Partial<NodeModules>
  }
  const isNode = Bun === undefined && Deno === undefined && process?.getBuiltinModule !== undefined
  return isNode ? (process as NodeModules) : undefined
}

interface Channel {
  readonly hasSubscribers: boolean
}

/** Where `fetch` announces each request on Node. Instrumentation that adds trace headers subscribes to it. */
const CHANNEL = 'undici:request:create'
/** Where `fetch` finds the dispatcher that a program has set with `setGlobalDispatcher`, such as one for a proxy. */
const DISPATCHER = Symbol.for('undici.globalDispatcher.1')

/**
 * Returns a function that says whether something listens to the requests of `fetch`, or another class than `Agent` sends them, so that they
 * must not go past it.
 */
function fetchChanges(node: NodeModules): () => boolean {
  const { channel } = node.getBuiltinModule('node:diagnostics_channel') as { channel(name: string): Channel }
  const created = channel(CHANNEL)
  return () => {
    const dispatcher = (globalThis as { readonly [DISPATCHER]?: object })[DISPATCHER]
    return created.hasSubscribers || (dispatcher !== undefined && dispatcher.constructor.name !== 'Agent')
  }
}
