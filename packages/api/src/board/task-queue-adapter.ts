// Shows a queue to Bull Board as tasks with their statuses instead of jobs in BullMQ's sets.
import type { TaskDefinition, TaskStatus } from '@bullpen/contract'
import { readTaskId, taskPath, waitText } from '@bullpen/contract/internal'
import type { Broker } from '@bullpen/engine'
import type { FingerprintCount } from '@bullpen/engine/internal'
import { formatData, formatJob, formatReturnValue, redactData } from './board-formatting.ts'
import type { BullBoard } from './bull-board.ts'
import { DELIMITER, kindTexts } from './error-kinds.ts'
import { TAB_NAMES, TABS, type Tab } from './tabs.ts'

type Adapter = InstanceType<BullBoard['BullMQAdapter']>
type Counts = Awaited<ReturnType<Adapter['getJobCounts']>>
/** The type of BullMQ's queue, taken from the adapter's parameter because only packages/bullmq may import bullmq. */
export type BoardQueue = ConstructorParameters<BullBoard['BullMQAdapter']>[0]
export type BoardJob = Awaited<ReturnType<Adapter['getJobs']>>[number]

/** What the board reads of the tasks, in addition to BullMQ's queues. */
export interface BoardReads extends Pick<Broker, 'find' | 'waitsFor' | 'counts' | 'countDead'> {
  /** Returns the definition with this name, if the catalogue has it. */
  definition(task: string): Pick<TaskDefinition, 'input'> | undefined
  /** Returns the jobs of one page. `start` and `end` are the positions of its first and last task, starting from 0. */
  boardJobs(page: {
    readonly queue: string
    readonly status: 'dead' | 'scheduled' | 'retrying' | 'cancelled' | 'expired' | 'in lanes'
    readonly fingerprint?: string | undefined
    readonly start: number
    readonly end: number
  }): Promise<readonly BoardJob[]>
}

export interface QueueView {
  readonly queue: BoardQueue
  readonly reads: BoardReads
  /** Whether the board shows its buttons. */
  readonly allowsChanges: boolean
  /** Receives the status of each task that the adapter returns. */
  readonly shown: Map<string, TaskStatus>
}

/** The dead tasks of a queue with one kind of error. */
export interface KindView extends QueueView {
  readonly name: string
  readonly fingerprint: string
  /** Whether the kind's page is open. Otherwise, the board only lists the kind. */
  readonly isOpen: boolean
  /** Undefined if there are no such tasks any more. */
  readonly count: FingerprintCount | undefined
}

/** BullMQ's sets of waiting jobs, of which the board shows one list. */
const WAITING_SETS = ['waiting', 'prioritized', 'waiting-children'] as const

/** The page of a task in one of these statuses shows no buttons, because none of them would work. */
const WITHOUT_BUTTONS: readonly TaskStatus[] = ['scheduled', 'retrying', 'cancelled', 'expired']

export interface BoardAdapters {
  readonly TaskQueueAdapter: new (view: QueueView) => Adapter
  readonly ErrorKindAdapter: new (kind: KindView) => Adapter
}

/** Creates the classes at run time, because their base class is loaded at run time. */
export function boardAdapters(BullMQAdapter: BullBoard['BullMQAdapter']): BoardAdapters {
  class TaskQueueAdapter extends BullMQAdapter {
    /** Only dead tasks can be retried. */
    override readonly allowCompletedRetries = false
    readonly #view: QueueView

    constructor(view: QueueView, texts: { displayName?: string; description?: string; delimiter?: string } = {}) {
      super(view.queue, {
        ...texts,
        readOnlyMode: !view.allowsChanges,
        externalJobUrl: (job) => ({ displayText: 'In the API', href: taskPath(String(job.id)) }),
      })
      this.#view = view
      this.setFormatter('data', formatData)
      this.setFormatter('returnValue', formatReturnValue)
    }

    override getStatuses(): ReturnType<Adapter['getStatuses']> {
      return ['latest', ...TAB_NAMES]
    }

    override getJobStatuses(): ReturnType<Adapter['getJobStatuses']> {
      return [...TAB_NAMES]
    }

    override async getJobCounts(): Promise<Counts> {
      const tasks = await this.#view.reads.counts(this.#view.queue.name)
      return Object.fromEntries(TAB_NAMES.map((tab) => [tab, tasks[TABS[tab]]])) as Counts
    }

    override async getJob(id: string) {
      // Jobs that other programs have added have ids of another form.
      const task = readTaskId(id)
      const [job, record] = await Promise.all([super.getJob(id), task && this.#view.reads.find(task.id)])
      if (job === undefined) return undefined
      const wait = record && (await this.#view.reads.waitsFor(record))
      return this.#shown(job, record?.status, record && wait && waitText(wait, record))
    }

    override async getJobs(tabs: Parameters<Adapter['getJobs']>[0], start = 0, end = Number.MAX_SAFE_INTEGER) {
      const pages = await Promise.all(
        (tabs as readonly Tab[]).map(async (tab) => {
          const status = TABS[tab]
          return (await this.readPage(status, start, end)).map((job) => this.#shown(job, status))
        }),
      )
      return pages.flat()
    }

    async readPage(status: TaskStatus, start: number, end: number): Promise<readonly BoardJob[]> {
      const { queue, reads } = this.#view
      if (status === 'waiting') return this.#readWaiting(start, end)
      if (status === 'active' || status === 'completed') return super.getJobs([status], start, end)
      return reads.boardJobs({ queue: queue.name, status, start, end })
    }

    /** Reads a page of BullMQ's sets and the lanes, which BullMQ does not know, as if they were one list. */
    async #readWaiting(start: number, end: number): Promise<readonly BoardJob[]> {
      const { queue, reads } = this.#view
      const sizes: Readonly<Record<string, number>> = await super.getJobCounts()
      let passed = 0
      const pages = WAITING_SETS.map((set) => {
        const size = sizes[set] ?? 0
        const [from, to] = [Math.max(start - passed, 0), Math.min(end - passed, size - 1)]
        passed += size
        return from <= to ? super.getJobs([set], from, to) : []
      })
      const inLanes =
        passed <= end
          ? reads.boardJobs({
              ...{ queue: queue.name, status: 'in lanes' },
              start: Math.max(start - passed, 0),
              end: end - passed,
            })
          : []
      return (await Promise.all([...pages, inLanes])).flat()
    }

    /** Changes the job in place, which is safe because the job was read only for this page. */
    #shown(job: BoardJob, status: TaskStatus | undefined, waitsFor?: string): BoardJob {
      const toJson = job.toJSON.bind(job)
      const definition = this.#view.reads.definition(job.name)
      job.toJSON = () => {
        const json = toJson()
        return formatJob({ ...json, data: redactData(json.data, definition) }, status, waitsFor)
      }
      if (status === undefined) return job
      this.#view.shown.set(String(job.id), status)
      // The page accepts any name, but Bull Board's type lists only those of BullMQ.
      if (WITHOUT_BUTTONS.includes(status)) job.getState = async () => status as 'unknown'
      // BullMQ reports a task in a lane as unknown.
      if (status === 'waiting') job.getState = async () => status
      return job
    }
  }

  class ErrorKindAdapter extends TaskQueueAdapter {
    readonly #kind: KindView

    constructor(kind: KindView) {
      super(kind, { ...kindTexts(kind.count), delimiter: DELIMITER })
      this.#kind = kind
    }

    override getName() {
      return this.#kind.name
    }

    /** The overview adds up the tasks on each tab of all entries. These tasks already count on their queue's tab. */
    override getStatuses(): ReturnType<Adapter['getStatuses']> {
      return this.#kind.isOpen ? ['latest', 'failed'] : ['latest']
    }

    override getJobStatuses(): ReturnType<Adapter['getJobStatuses']> {
      return ['failed']
    }

    override async getJobCounts(): Promise<Counts> {
      const { isOpen, count } = this.#kind
      const failed = count?.count ?? 0
      return (isOpen ? { failed } : { failed, latest: failed }) as Counts
    }

    override async readPage(status: TaskStatus, start: number, end: number): Promise<readonly BoardJob[]> {
      const { queue, reads, fingerprint } = this.#kind
      return status === 'dead' ? reads.boardJobs({ queue: queue.name, status, fingerprint, start, end }) : []
    }

    // The board asks for these of each entry, but they are properties of the queue.
    override async isPaused() {
      return false
    }

    override async getWorkers() {
      return null
    }

    override getGlobalConcurrency() {
      return Promise.resolve(null)
    }

    override async getActiveRateLimitTtl() {
      return 0
    }

    override async getJobSchedulersCount() {
      return 0
    }

    override async getJobSchedulers() {
      return []
    }
  }

  return { TaskQueueAdapter, ErrorKindAdapter }
}
