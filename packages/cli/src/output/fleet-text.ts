// The fleet as people read it: queues, processes with their pools, and workers.
import type { FleetView, PoolState, ProcessView, QueueView, WorkerView } from '@bullpen/contract'
import { type Cell, lines, rowsOf } from './columns.ts'
import { lengthOf, plain, relative } from './format.ts'
import type { Look } from './task-text.ts'

/** Less is told by nobody's clock. */
const SKEW_TOLD_MS = 100

/** As `bullpen stop` takes it. */
export function workerName({ process, queue, worker }: Pick<WorkerView, 'process' | 'queue' | 'worker'>): string {
  return `${plain(process)}/${plain(queue)}/${worker}`
}

/** Times are told from the fleet's own now: this machine's clock may be off. */
export function fleetLines(
  fleet: FleetView,
  workers: readonly WorkerView[] | undefined,
  look: Look,
): readonly string[] {
  const at = { ...look, now: Date.parse(fleet.now) }
  const head = ['queue', 'busy', 'pools', 'state']
  return [
    ...lines([head, ...fleet.queues.map((queue) => queueRow(queue, at.now))], { ...at, indent: 0 }),
    '',
    ...(fleet.processes.length === 0 ? ['no process works here'] : []),
    ...fleet.processes.flatMap((process) => processLines(process, workers, at)),
  ]
}

function queueRow({ queue, busy, workers, pools, paused, drain, concurrency, rate }: QueueView, now: number): Cell[] {
  const odd = [
    ...(drain === undefined ? [] : [`closed: ${drain.mode} drain, begun ${relative(drain.since, now)}`]),
    ...(paused ? ['paused'] : []),
  ]
  const limits = [
    ...(concurrency === undefined ? [] : [`at most ${concurrency} at once`]),
    ...(rate === undefined ? [] : [`at most ${rate.max} starts in ${lengthOf(rate.perMs)}`]),
  ]
  const state = [...(odd.length === 0 ? ['open'] : odd), ...limits].join(', ')
  return [plain(queue), `${busy}/${workers}`, String(pools), odd.length === 0 ? state : ['yellow', state]]
}

function processLines(process: ProcessView, workers: readonly WorkerView[] | undefined, look: Look): readonly string[] {
  const name = plain(process.process)
  const pools = rowsOf(process.pools.map(poolRow), { ...look, indent: 2 })
  return [
    ...lines([[process.alive ? name : ['red', name], about(process, look.now)]], { ...look, indent: 0 }),
    ...process.pools.flatMap(({ queue }, i) => [
      ...(pools[i] ?? []),
      ...workerLines(workers?.filter((each) => each.process === process.process && each.queue === queue) ?? [], look),
    ]),
  ]
}

function about(
  { process, host, alive, seenAt, startedAt, version, draining, skewMs }: ProcessView,
  now: number,
): string {
  const up = lengthOf(now - Date.parse(startedAt))
  return [
    alive ? (draining ? 'draining' : '') : `silent for ${lengthOf(now - Date.parse(seenAt))}`,
    alive ? `up ${up}` : '',
    process.startsWith(host) ? '' : `on ${plain(host)}`,
    `version ${plain(version)}`,
    Math.abs(skewMs) < SKEW_TOLD_MS ? '' : `clock ${lengthOf(Math.abs(skewMs))} ${skewMs > 0 ? 'ahead' : 'behind'}`,
  ]
    .filter(Boolean)
    .join(', ')
}

type Pool = ProcessView['pools'][number]

function poolRow({ queue, state, busy, concurrency, paused, leftovers, notReady }: Pool): Cell[] {
  const odd = [
    paused ? 'paused' : '',
    leftovers === 0 ? '' : `${leftovers} go on after their end`,
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

function workerLines(workers: readonly WorkerView[], look: Look): readonly string[] {
  const rows = workers.map((worker): Cell[] => {
    const { state, since, task } = worker
    const shown: Cell =
      state === 'WORKING' ? ['cyan', state] : state === 'IDLE' || state === 'NEW' ? state : ['yellow', state]
    const time = lengthOf(look.now - Date.parse(since))
    return [workerName(worker), shown, time, plain(task?.task ?? ''), plain(task?.id ?? '')]
  })
  return lines(rows, { ...look, indent: 4 })
}
