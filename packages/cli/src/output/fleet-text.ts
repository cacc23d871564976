// The fleet as people read it: queues, workers with their pools, and slots.
import type { FleetView, PoolState, QueueView, SlotView, WorkerView } from '@bullpen/contract'
import { type Cell, lines, rowsOf } from './columns.ts'
import { lengthOf, plain, relative } from './format.ts'
import type { Look } from './task-text.ts'

/** Less is told by nobody's clock. */
const SKEW_TOLD_MS = 100

/** As `bullpen stop` takes it. */
export function workerName({ worker, queue, slot }: Pick<SlotView, 'worker' | 'queue' | 'slot'>): string {
  return `${plain(worker)}/${plain(queue)}/${slot}`
}

/** Times are told from the fleet's own now: this machine's clock may be off. */
export function fleetLines(fleet: FleetView, slots: readonly SlotView[] | undefined, look: Look): readonly string[] {
  const at = { ...look, now: Date.parse(fleet.now) }
  const head = ['queue', 'busy', 'pools', 'state']
  return [
    ...lines([head, ...fleet.queues.map((queue) => queueRow(queue, at.now))], { ...at, indent: 0 }),
    '',
    ...(fleet.workers.length === 0 ? ['no worker works here'] : []),
    ...fleet.workers.flatMap((worker) => processLines(worker, slots, at)),
  ]
}

function queueRow({ queue, busy, slots, pools, paused, drain, concurrency, rate }: QueueView, now: number): Cell[] {
  const odd = [
    ...(drain === undefined ? [] : [`closed: ${drain.mode} drain, begun ${relative(drain.since, now)}`]),
    ...(paused ? ['paused'] : []),
  ]
  const limits = [
    ...(concurrency === undefined ? [] : [`at most ${concurrency} at once`]),
    ...(rate === undefined ? [] : [`at most ${rate.max} starts in ${lengthOf(rate.perMs)}`]),
  ]
  const state = [...(odd.length === 0 ? ['open'] : odd), ...limits].join(', ')
  return [plain(queue), `${busy}/${slots}`, String(pools), odd.length === 0 ? state : ['yellow', state]]
}

function processLines(worker: WorkerView, slots: readonly SlotView[] | undefined, look: Look): readonly string[] {
  const name = plain(worker.worker)
  const pools = rowsOf(worker.pools.map(poolRow), { ...look, indent: 2 })
  return [
    ...lines([[worker.alive ? name : ['red', name], about(worker, look.now)]], { ...look, indent: 0 }),
    ...worker.pools.flatMap(({ queue }, i) => [
      ...(pools[i] ?? []),
      ...workerLines(slots?.filter((each) => each.worker === worker.worker && each.queue === queue) ?? [], look),
    ]),
  ]
}

function about({ worker, host, alive, seenAt, startedAt, version, draining, skewMs }: WorkerView, now: number): string {
  const up = lengthOf(now - Date.parse(startedAt))
  return [
    alive ? (draining ? 'draining' : '') : `silent for ${lengthOf(now - Date.parse(seenAt))}`,
    alive ? `up ${up}` : '',
    worker.startsWith(host) ? '' : `on ${plain(host)}`,
    `version ${plain(version)}`,
    Math.abs(skewMs) < SKEW_TOLD_MS ? '' : `clock ${lengthOf(Math.abs(skewMs))} ${skewMs > 0 ? 'ahead' : 'behind'}`,
  ]
    .filter(Boolean)
    .join(', ')
}

type Pool = WorkerView['pools'][number]

function poolRow({ queue, state, busy, concurrency, paused, stuckHandlers, notReady }: Pool): Cell[] {
  const odd = [
    paused ? 'paused' : '',
    stuckHandlers === 0 ? '' : `${stuckHandlers} go on after their end`,
    notReady === undefined ? '' : `takes none: ${plain(notReady)}`,
  ]
  return [
    plain(queue),
    runs(state) ? state : ['yellow', state],
    `${busy}/${concurrency}`,
    odd.filter(Boolean).join(', '),
  ]
}

function runs(state: PoolState): boolean {
  return state === 'BG_RUNNING' || state === 'ONLINE_RUNNING'
}

function workerLines(slots: readonly SlotView[], look: Look): readonly string[] {
  const rows = slots.map((slot): Cell[] => {
    const { state, since, task } = slot
    const shown: Cell =
      state === 'WORKING' ? ['cyan', state] : state === 'IDLE' || state === 'NEW' ? state : ['yellow', state]
    const time = lengthOf(look.now - Date.parse(since))
    return [workerName(slot), shown, time, plain(task?.task ?? ''), plain(task?.id ?? '')]
  })
  return lines(rows, { ...look, indent: 4 })
}
