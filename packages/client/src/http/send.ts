// Sends requests: on Node with its own HTTP client, and elsewhere with `fetch`.
import { fetchChanges } from './fetch-changes.ts'
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
  // Whoever has replaced `fetch`, such as a test, expects to see the requests.
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
