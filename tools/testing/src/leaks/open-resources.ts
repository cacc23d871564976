// Tracks open handles: timers, sockets, servers, threads, child processes and watchers that were created and not yet closed.
import { createHook } from 'node:async_hooks'
import { type CallSite, callSite, isOfTestRunner, placeOf, wasCalledBy } from './call-site.ts'

/**
 * Readable names for the types of `node:async_hooks`. Other types are requests, which end on their own, or do not keep anything
 * open.
 */
const KINDS: Readonly<Record<string, string>> = {
  Timeout: 'timer',
  TCPWRAP: 'socket',
  TCPSERVERWRAP: 'server',
  PIPEWRAP: 'pipe',
  PIPESERVERWRAP: 'server',
  UDPWRAP: 'UDP socket',
  PROCESSWRAP: 'child process',
  WORKER: 'worker thread',
  MESSAGEPORT: 'message port',
  FSEVENTWRAP: 'file watcher',
  STATWATCHER: 'file watcher',
}

interface Handle {
  hasRef?(): boolean
  /** Servers and sockets have this method, which writes their local address. */
  getsockname?(address: { port?: number }): unknown
}

interface Resource {
  readonly type: string
  /** The reference is weak because a resource that only the tracker can reach will be collected and is not a leak. */
  readonly handle: WeakRef<Handle>
  readonly site: CallSite
}

export interface OpenResources {
  /** Returns one line for each resource, with the place that created it. */
  list(): readonly string[]
  stop(): void
}

/** Tracks resources that are created from now on. Promises are not tracked, so the cost is one stack trace per handle. */
export function trackResources(): OpenResources {
  const open = new Map<number, Resource>()
  const hook = createHook({
    trackPromises: false,
    init: function init(id, type, _trigger, handle) {
      if (type in KINDS) open.set(id, { type, handle: new WeakRef(handle), site: callSite(init) })
    },
    destroy: (id) => void open.delete(id),
  }).enable()
  return {
    list: () => [...open.values()].filter(isLeak).map(described),
    stop: () => void hook.disable(),
  }
}

/** Resources that outlive their owner on purpose, by the file that creates them. */
const ALLOWED: readonly { readonly file: RegExp; readonly reason: string }[] = [
  {
    file: /bullmq\/src\/plain-processor\.ts/,
    reason: 'a plain processor has no close(); the timers of its idle slots do not keep anything open, and run out',
  },
  {
    file: /node_modules\/bullmq\/.*\/redis-queue-backend\.js/,
    reason: "BullMQ's watchdog of a blocking read: it ends with the read, which takes seconds if Redis is cut off",
  },
  {
    file: /bullmq\/src\/internals\/worker\/job-scripts\.ts/,
    reason: "a throttle's release: it does not keep anything open, and does nothing once its worker has closed",
  },
]

function isLeak({ type, handle, site }: Resource): boolean {
  const resource = handle.deref()
  if (resource === undefined || isOfTestRunner(site)) return false
  const place = placeOf(site)
  if (ALLOWED.some(({ file }) => place !== undefined && file.test(place))) return false
  switch (type) {
    case 'MESSAGEPORT':
      // A port without a listener is collected together with its owner.
      return resource.hasRef?.() ?? true
    case 'Timeout':
      // Node's own timers and those of AbortSignal.timeout() are left out, because they cannot be cleared and do not keep
      // anything open.
      return place !== undefined && !wasCalledBy(site, 'AbortSignal.timeout')
    case 'PIPEWRAP':
      // Standard streams are opened when they are first used, and they belong to the process.
      return !wasCalledBy(site, 'process.getStd')
    default:
      return true
  }
}

/**
 * Describes a resource. The description of a server includes its port, because servers are often opened in one of Node's
 * callbacks, where there is no caller to name.
 */
function described({ type, handle, site }: Resource): string {
  const address: { port?: number } = {}
  handle.deref()?.getsockname?.(address)
  const port = address.port === undefined ? '' : ` on port ${address.port}`
  return `${KINDS[type]}${port}, created at ${placeOf(site) ?? 'a callback of Node'}`
}
