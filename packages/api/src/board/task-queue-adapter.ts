// Shows a queue to Bull Board as tasks with their statuses instead of jobs in BullMQ's sets.
import type { TaskStatus } from '@bullpen/contract'
import { readTaskId, taskPath } from '@bullpen/contract/internal'
import type { Broker } from '@bullpen/engine'
import { formatData, formatJob, formatReturnValue } from './board-formatting.ts'
import type { BullBoard } from './bull-board.ts'
import { isPartTab, type PartTab, TAB_NAMES, TABS, type Tab, tabOf } from './tabs.ts'

type Adapter = InstanceType<BullBoard['BullMQAdapter']>
/** The type of BullMQ's queue, taken from the adapter's parameter because only packages/bullmq may import bullmq. */
export type BoardQueue = ConstructorParameters<BullBoard['BullMQAdapter']>[0]
export type BoardJob = Awaited<ReturnType<Adapter['getJobs']>>[number]

/** What the board reads of the tasks, in addition to BullMQ's queues. */
export interface BoardReads extends Pick<Broker, 'find' | 'counts'> {
  /** Returns the jobs of one page. `start` and `end` are the positions of its first and last task, starting from 0. */
  boardJobs(page: {
    readonly queue: string
    readonly status: (typeof TABS)[PartTab]
    readonly start: number
    readonly end: number
  }): Promise<readonly BoardJob[]>
}

export interface QueueView {
  readonly queue: BoardQueue
  readonly reads: BoardReads
  /** Whether the board shows its buttons. */
  readonly allowsChanges: boolean
  /** The tab to show, if Bull Board itself does not accept the tab's name. */
  readonly tab?: Tab | undefined
  /** Receives the status of each task that the adapter returns. */
  readonly shown: Map<string, TaskStatus>
}

export type TaskQueueAdapterClass = new (view: QueueView) => Adapter

/** Creates the class at run time, because its base class is loaded at run time. */
export function taskQueueAdapter(BullMQAdapter: BullBoard['BullMQAdapter']): TaskQueueAdapterClass {
  return class TaskQueueAdapter extends BullMQAdapter {
    /** Only dead tasks can be retried. */
    override readonly allowCompletedRetries = false
    readonly #view: QueueView

    constructor(view: QueueView) {
      super(view.queue, {
        readOnlyMode: !view.allowsChanges,
        externalJobUrl: (job) => ({ displayText: 'In the API', href: taskPath(String(job.id)) }),
      })
      this.#view = view
      this.setFormatter('data', formatData)
      this.setFormatter('returnValue', formatReturnValue)
    }

    /** Bull Board's type lists BullMQ's sets, but its pages show any other name as well. */
    override getStatuses() {
      return ['latest', ...TAB_NAMES] as ReturnType<Adapter['getStatuses']>
    }

    override getJobStatuses() {
      const { tab } = this.#view
      return (tab === undefined ? [...TAB_NAMES] : [tab]) as ReturnType<Adapter['getJobStatuses']>
    }

    override async getJobCounts() {
      const { queue, reads } = this.#view
      const [jobs, tasks] = await Promise.all([super.getJobCounts(), reads.counts(queue.name)])
      const sizes: Readonly<Record<string, number>> = jobs
      const counts = TAB_NAMES.map((tab) => [tab, isPartTab(tab) ? tasks[TABS[tab]] : (sizes[tab] ?? 0)])
      return Object.fromEntries(counts) as Awaited<ReturnType<Adapter['getJobCounts']>>
    }

    override async getJob(id: string) {
      // Jobs that other programs have added have ids of another form.
      const task = readTaskId(id)
      const [job, record] = await Promise.all([super.getJob(id), task && this.#view.reads.find(task.id)])
      return job === undefined ? undefined : this.#shown(job, record?.status)
    }

    override async getJobs(tabs: Parameters<Adapter['getJobs']>[0], start = 0, end = -1) {
      const pages = await Promise.all((tabs as readonly Tab[]).map((tab) => this.#page(tab, start, end)))
      return pages.flat()
    }

    async #page(tab: Tab, start: number, end: number): Promise<readonly BoardJob[]> {
      const { queue, reads } = this.#view
      const jobs = isPartTab(tab)
        ? await reads.boardJobs({ queue: queue.name, status: TABS[tab], start, end })
        : await super.getJobs([tab], start, end)
      return jobs.map((job) => this.#shown(job, TABS[tab]))
    }

    /** Changes the job in place, which is safe because the job was read only for this page. */
    #shown(job: BoardJob, status: TaskStatus | undefined): BoardJob {
      const toJson = job.toJSON.bind(job)
      job.toJSON = () => formatJob(toJson(), status)
      if (status === undefined) return job
      this.#view.shown.set(String(job.id), status)
      const tab = tabOf(status)
      // The board chooses the buttons by this name. For the statuses that several tabs show, BullMQ knows the right one.
      if (tab !== undefined) job.getState = async () => tab as Awaited<ReturnType<BoardJob['getState']>>
      return job
    }
  }
}
