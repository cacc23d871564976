// Which files of Bullpen rely on a script or a method of BullMQ. Paths are relative to packages/bullmq/src.

import { REPLACED } from '../composition/bullmq-scripts.ts'

const SCRIPTS = 'internals/composition/bullmq-scripts.ts'
const BACKEND = 'internals/composition/backend.ts'
const CONSUMER = 'internals/worker/consumer-worker.ts'
const MOVES = 'store/moves.ts'
const OWN = 'store/backend.ts'
const REMOVAL = 'store/lua/includes/bullmq/job-removal.lua'
const OWN_ADDS = [
  OWN,
  'store/own-job.ts',
  ...['bullmq/own-adds', 'bullmq/own-job', 'bullmq/existing-job', 'bullmq/deduplicate'].map(
    (name) => `store/lua/includes/${name}.lua`,
  ),
]
const SCHEDULERS = [
  'store/lua/includes/bullmq/scheduler.lua',
  'store/lua/includes/bullmq/own-job.lua',
  'store/own-job.ts',
  OWN,
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
  releaseParentIfNoPendingDependencies: ['store/lua/includes/bullmq/existing-job.lua', OWN],
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
    OWN,
    'store/lua/recover.lua',
    ...['end/lost-attempts', 'end/losses'].map((name) => `store/lua/includes/${name}.lua`),
    'queries/task-state.ts',
  ],
  retryJob: END_AND_START,
  reprocessJob: ['store/lua/retry-ended.lua', 'store/lua/includes/end/return-ended.lua', OWN],
  promote: ['store/lua/promote-task.lua', OWN],
  changeDelay: ['store/lua/change-delay.lua', OWN],
  moveJobsToWait: ['store/lua/return-jobs.lua', 'store/lua/includes/end/return-ended.lua', OWN],
  changePriority: ['store/lua/change-priority.lua', OWN],
  addJobScheduler: ['store/lua/add-scheduler.lua', ...SCHEDULERS],
  updateJobScheduler: ['store/lua/update-scheduler.lua', ...SCHEDULERS],
  removeJobScheduler: ['store/lua/remove-scheduler.lua', REMOVAL, OWN],
  moveToWaitingChildren: ['store/lua/wait-for-children.lua', OWN],
  removeChildDependency: ['store/lua/remove-child-dependency.lua', 'store/lua/includes/end/remove-ended.lua', OWN],
  removeJob: ['store/lua/remove-job.lua', REMOVAL, OWN],
  removeUnprocessedChildren: ['store/lua/remove-unprocessed-children.lua', REMOVAL, OWN],
  cleanJobsInSet: ['store/lua/clean-jobs.lua', REMOVAL, OWN],
  drain: ['store/lua/drain-queue.lua', REMOVAL, OWN],
  obliterate: ['store/lua/obliterate-queue.lua', REMOVAL, OWN],
  removeOrphanedJobs: ['store/lua/remove-orphans.lua', OWN],
  updateData: ['store/lua/change-data.lua', OWN],
  extendLock: ['locks/renew-locks.lua', OWN],
  extendLocks: ['locks/renew-locks.lua', OWN],
  pause: ['store/lua/pause-queue.lua', OWN, 'fleet/apply-settings.lua'],
}

/** By class, or by class and method. */
const BY_METHOD: Readonly<Record<string, readonly string[]>> = {
  'RedisQueueBackend.execCommand': [BACKEND],
  'RedisQueueBackend.waitForJob': [BACKEND],
  'RedisQueueBackend.moveToDelayed': [MOVES, 'processor.ts'],
  'RedisQueueBackend.moveJobFromActiveToWait': [MOVES, 'processor.ts'],
  'Worker.pause': [CONSUMER, 'consumer.ts', 'internals/worker/unattached-worker.ts'],
  'RedisQueueBackend.forQueue': [BACKEND, 'internals/worker/unattached-worker.ts'],
  'RedisQueueBackend.addJobToTransaction': [OWN],
  'RedisQueueBackend.addFlow': [OWN],
  Worker: [CONSUMER, 'consumer.ts', 'plain-processor.ts'],
  'Worker.handleFailed': ['processor.ts', CONSUMER],
  'Worker.waitForJob': [BACKEND],
  'Worker.getBlockTimeout': [BACKEND],
  QueueBase: [BACKEND],
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
