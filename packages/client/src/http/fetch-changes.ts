// Looks whether requests have to go through `fetch` on Node, although Node's HTTP client is cheaper.
import type { NodeModules } from './node-send.ts'

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
export function fetchChanges(node: NodeModules): () => boolean {
  const { channel } = node.getBuiltinModule('node:diagnostics_channel') as { channel(name: string): Channel }
  const created = channel(CHANNEL)
  return () => {
    const dispatcher = (globalThis as { readonly [DISPATCHER]?: object })[DISPATCHER]
    return created.hasSubscribers || (dispatcher !== undefined && dispatcher.constructor.name !== 'Agent')
  }
}
