// Which files of Bullpen rely on a script or a method of BullMQ. Paths are relative to packages/bullmq/src.

import { REPLACED } from '../../store/bullmq-scripts.ts'

const SCRIPTS = 'store/bullmq-scripts.ts'
const BACKEND = 'store/backend.ts'
const CONSUMER = 'internals/worker/consumer-worker.ts'
const MOVES = 'store/moves.ts'
const ADDS = 'store/backend-adds.ts'
const CHANGES = 'store/backend-changes.ts'
const LOCKS = 'store/backend-locks.ts'
const REMOVAL = 'store/lua/includes/bullmq/job-removal.lua'
const OWN_ADDS = [
  ADDS,
  'store/own-job.ts',
  ...['bullmq/own-adds', 'bullmq/own-job', 'bullmq/existing-job', 'bullmq/deduplicate'].map(
    (name) => `store/lua/includes/${name}.lua`,
  ),
]
const SCHEDULERS = [
  'store/lua/includes/bullmq/scheduler.lua',
  'store/lua/includes/bullmq/own-job.lua',
  'store/own-job.ts',
  ADDS,
]
/** The scripts of ours in place of BullMQ's, and what they include. */
const END_AND_START = [
  'end-and-start',
  'includes/end/attempt-end',
  'includes/end/task-end',
  'includes/end/task-return',
  'includes/start/task-start',
  'includes/place/enter-place',
].map((name) => `store/lua/${name}.lua`)

/** Scripts that Bullpen's own replace. The others matter only if they add, move or delete jobs. */
const BY_SCRIPT: Readonly<Record<string, readonly string[]>> = {
  addStandardJob: OWN_ADDS,
  addDelayedJob: [...OWN_ADDS, 'internals/status/places.ts'],
  addPrioritizedJob: OWN_ADDS,
  addParentJob: OWN_ADDS,
  releaseParentIfNoPendingDependencies: ['store/lua/includes/bullmq/existing-job.lua', ADDS],
  moveToActive: [...END_AND_START, 'internals/throttle.lua', 'leader/survey-queue.lua', 'fleet/apply-settings.lua'],
  moveToFinished: [
    ...END_AND_START,
    'internals/throttle.lua',
    'processor.ts',
    ...[
      'end/end-without-run',
      'bullmq/flow-parent',
      'bullmq/deduplication',
      'bullmq/bullmq-metrics',
      'end/remove-ended',
    ].map((name) => `store/lua/includes/${name}.lua`),
  ],
  moveToDelayed: [
    ...END_AND_START,
    'internals/status/places.ts',
    'processor.ts',
    'store/lua/includes/place/delayed-set.lua',
  ],
  moveJobFromActiveToWait: [...END_AND_START, 'processor.ts'],
  moveStalledJobsToWait: [
    LOCKS,
    'store/lua/recover.lua',
    ...['end/lost-attempts', 'end/losses'].map((name) => `store/lua/includes/${name}.lua`),
    'queries/task-state.ts',
  ],
  retryJob: END_AND_START,
  reprocessJob: ['store/lua/retry-ended.lua', 'store/lua/includes/end/return-ended.lua', CHANGES],
  promote: ['store/lua/promote-task.lua', CHANGES],
  changeDelay: ['store/lua/change-delay.lua', CHANGES],
  moveJobsToWait: ['store/lua/return-jobs.lua', 'store/lua/includes/end/return-ended.lua', CHANGES],
  changePriority: ['store/lua/change-priority.lua', CHANGES],
  addJobScheduler: ['store/lua/add-scheduler.lua', ...SCHEDULERS],
  updateJobScheduler: ['store/lua/update-scheduler.lua', ...SCHEDULERS],
  removeJobScheduler: ['store/lua/remove-scheduler.lua', REMOVAL, ADDS],
  moveToWaitingChildren: ['store/lua/wait-for-children.lua', CHANGES],
  removeChildDependency: ['store/lua/remove-child-dependency.lua', 'store/lua/includes/end/remove-ended.lua', CHANGES],
  removeJob: ['store/lua/remove-job.lua', REMOVAL, CHANGES],
  removeUnprocessedChildren: ['store/lua/remove-unprocessed-children.lua', REMOVAL, CHANGES],
  cleanJobsInSet: ['store/lua/clean-jobs.lua', REMOVAL, CHANGES],
  drain: ['store/lua/drain-queue.lua', REMOVAL, CHANGES],
  obliterate: ['store/lua/obliterate-queue.lua', REMOVAL, CHANGES],
  removeOrphanedJobs: ['store/lua/remove-orphans.lua', CHANGES],
  updateData: ['store/lua/change-data.lua', CHANGES],
  extendLock: ['locks/renew-locks.lua', LOCKS],
  extendLocks: ['locks/renew-locks.lua', LOCKS],
  pause: ['store/lua/pause-queue.lua', CHANGES, 'fleet/apply-settings.lua'],
}

/** By class, or by class and method. */
const BY_METHOD: Readonly<Record<string, readonly string[]>> = {
  'RedisQueueBackend.execCommand': [BACKEND],
  'RedisQueueBackend.waitForJob': [BACKEND],
  'RedisQueueBackend.moveToDelayed': [MOVES, 'processor.ts'],
  'RedisQueueBackend.moveJobFromActiveToWait': [MOVES, 'processor.ts'],
  'Worker.pause': [CONSUMER, 'consumer.ts', 'internals/worker/refused-worker.ts'],
  'RedisQueueBackend.forQueue': [BACKEND, 'internals/worker/refused-worker.ts'],
  'RedisQueueBackend.addJobToTransaction': [ADDS],
  'RedisQueueBackend.addFlow': [ADDS],
  Worker: [CONSUMER, 'consumer.ts', 'plain-processor.ts'],
  'Worker.handleFailed': ['processor.ts', CONSUMER],
  'Worker.waitForJob': [BACKEND],
  'Worker.getBlockTimeout': [BACKEND],
  QueueBase: [BACKEND],
  AsyncFifoQueue: [CONSUMER],
  Job: ['processor.ts', 'plain-processor.ts'],
  'Job.updateStacktrace': ['processor.ts', 'codec.ts'],
  createRedisBackend: [BACKEND],
}

/** All files that are named here. */
export const RELIANT_FILES: ReadonlySet<string> = new Set([
  ...Object.values(BY_SCRIPT).flat(),
  ...Object.values(BY_METHOD).flat(),
  SCRIPTS,
])

/** `name` is a script, or a method with its class. */
export function reliantFiles(kind: 'script' | 'method', name: string): readonly string[] {
  if (kind === 'script') return BY_SCRIPT[name] === undefined ? others(name) : [...BY_SCRIPT[name], ...others(name)]
  const [owner = ''] = name.split('.')
  return BY_METHOD[name] ?? BY_METHOD[owner] ?? [BACKEND]
}

function others(script: string): readonly string[] {
  if (REPLACED.includes(script)) return []
  return [SCRIPTS]
}
