// The part of the client that looks at the fleet and commands it.
import {
  type CommandPage,
  type CommandRequest,
  type CommandView,
  type Duration,
  type FleetView,
  milliseconds,
  type PoolPage,
  type PoolView,
  type SlotPage,
  type SlotState,
  type SlotView,
} from '@bullpen/contract'
import { COMMAND_WAIT_S } from '@bullpen/contract/internal'
import { send, type Transport } from './transport.ts'

/** What is to be done, to what, and how; what has a default may be left out. */
export type FleetOrder = CommandRequest extends infer One
  ? One extends CommandRequest
    ? Omit<One, 'id' | 'by'>
    : never
  : never

interface CommandOptions {
  /** How long the API waits for every worker's answer, at most '30s'. Default '5s'. */
  readonly wait?: Duration | 'none'
  /** Of the command: the same twice is one. Default: one made here, so that a lost answer can be asked for again. */
  readonly id?: string
  /** Who asks, for the audit. */
  readonly by?: string
  readonly signal?: AbortSignal
}

interface Calling {
  readonly signal?: AbortSignal
}

interface Pools extends Calling {
  readonly queue?: string
  readonly worker?: string
}

export interface FleetCalls {
  /** The queues, and every worker with its pools; or one queue, and those that work it. Times are Redis's. */
  fleet(options?: Calling & { readonly queue?: string }): Promise<FleetView>
  /** The pools of live workers. */
  pools(options?: Pools): Promise<readonly PoolView[]>
  /** The slots of live workers, each with what it runs. */
  slots(options?: Pools & { readonly state?: SlotState }): Promise<readonly SlotView[]>
  /**
   * Gives the fleet a command; resolves when every worker has answered, or when the wait is over: look at `outcome`.
   *
   * Safe to repeat, and repeated like a look-up: its id is made before it is sent.
   */
  command(order: FleetOrder, options?: CommandOptions): Promise<CommandView>
  /** The command as it stands, or when every worker has answered (`wait`: at most '30s', default none). */
  commandById(id: string, options?: Pick<CommandOptions, 'wait' | 'signal'>): Promise<CommandView>
  /** The newest commands first, 1 to 200 of them; the API's default is 50. */
  commands(options?: Calling & { readonly limit?: number }): Promise<readonly CommandView[]>
}

/** `timeoutMs`: for one try, on top of the time that it asks the API to wait. */
export function fleetCalls(transport: Transport, timeoutMs: number): FleetCalls {
  const get = (path: string, signal: AbortSignal | undefined, waitMs = 0): Promise<unknown> =>
    send(transport, { method: 'GET', path, timeoutMs: timeoutMs + waitMs, signal })

  return {
    async fleet({ signal, ...query } = {}) {
      return (await get(`v1/fleet${queryText(query)}`, signal)) as FleetView
    },
    async pools({ signal, ...query } = {}) {
      return ((await get(`v1/pools${queryText(query)}`, signal)) as PoolPage).pools
    },
    async slots({ signal, ...query } = {}) {
      return ((await get(`v1/workers${queryText(query)}`, signal)) as SlotPage).slots
    },
    async command(order, { wait, id = crypto.randomUUID(), by, signal } = {}) {
      const waitMs = wait === undefined ? COMMAND_WAIT_S * 1_000 : waitIn(wait)
      return (await send(transport, {
        method: 'POST',
        path: `v1/commands?wait=${waitMs / 1_000}`,
        body: { ...order, id, ...(by === undefined ? {} : { by }) },
        timeoutMs: timeoutMs + waitMs,
        repeatable: true,
        signal,
      })) as CommandView
    },
    async commandById(id, { wait = 'none', signal } = {}) {
      const waitMs = waitIn(wait)
      const query = waitMs === 0 ? '' : `?wait=${waitMs / 1_000}`
      return (await get(`v1/commands/${encodeURIComponent(id)}${query}`, signal, waitMs)) as CommandView
    },
    async commands({ signal, limit } = {}) {
      const query = queryText({ limit: limit === undefined ? undefined : String(limit) })
      return ((await get(`v1/commands${query}`, signal)) as CommandPage).commands
    },
  }
}

function waitIn(wait: Duration | 'none'): number {
  return wait === 'none' ? 0 : milliseconds(wait, 'wait')
}

function queryText(values: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(values).filter((entry): entry is [string, string] => entry[1] !== undefined)
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`
}
