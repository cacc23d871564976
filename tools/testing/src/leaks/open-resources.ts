// Open handles: timers, sockets, servers, threads, child processes and watchers that were created and not yet closed.
import { createHook } from 'node:async_hooks'
import { type CallSite, callSite, isOfTestRunner, placeOf, wasCalledBy } from './call-site.ts'

/** What a reader calls the types of `node:async_hooks`. Other types are requests, which end by themselves, or hold nothing. */
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
  /** Of servers and sockets: writes their local address. */
  getsockname?(address: { port?: number }): unknown
}

interface Resource {
  readonly type: string
  /** Weak: a resource that only the tracker still reaches is collected, and is no leak. */
  readonly handle: WeakRef<Handle>
  readonly site: CallSite
}

export interface OpenResources {
  /** One line for each, with the place that created it. */
  list(): readonly string[]
  stop(): void
}

/** Tracks what is created from now on. Promises are not tracked, so that the cost is that of a stack trace for each handle. */
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

/** What outlives its owner on purpose, by the file that creates it. */
const ALLOWED: readonly { readonly file: RegExp; readonly reason: string }[] = [
  {
    file: /bullmq\/src\/plain-processor\.ts/,
    reason: 'a plain processor has no close(); the timers of its idle slots hold nothing open, and run out',
  },
  {
    file: /node_modules\/bullmq\/.*\/redis-queue-backend\.js/,
    reason: "BullMQ's watchdog of a blocking read: it ends with the read, which takes seconds if Redis is cut off",
  },
  {
    file: /bullmq\/src\/internals\/job-scripts\.ts/,
    reason: "a throttle's release: it holds nothing open, and does nothing once its worker has closed",
  },
]

function isLeak({ type, handle, site }: Resource): boolean {
  const resource = handle.deref()
  if (resource === undefined || isOfTestRunner(site)) return false
  const place = placeOf(site)
  if (ALLOWED.some(({ file }) => place !== undefined && file.test(place))) return false
  switch (type) {
    case 'MESSAGEPORT':
      // A port that is not listened to is collected with its owner.
      return resource.hasRef?.() ?? true
    case 'Timeout':
      // Leaves out timers of Node itself, and of AbortSignal.timeout(): nothing can clear these, and they hold nothing open.
      return place !== undefined && !wasCalledBy(site, 'AbortSignal.timeout')
    case 'PIPEWRAP':
      // Standard streams are opened when they are first read, and belong to the process.
      return !wasCalledBy(site, 'process.getStd')
    default:
      return true
  }
}

/** A server has its port as well: it is often opened in a callback of Node, where no caller is left to name. */
function described({ type, handle, site }: Resource): string {
  const address: { port?: number } = {}
  handle.deref()?.getsockname?.(address)
  const port = address.port === undefined ? '' : ` on port ${address.port}`
  return `${KINDS[type]}${port}, created at ${placeOf(site) ?? 'a callback of Node'}`
}
