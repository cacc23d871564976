// Defines the conformance suite, which tests the behaviour that every broker and the pools on it must have. The suite runs
// against the Redis broker and the in-memory broker.
import { describe } from 'vitest'
import type { OpenBackend } from './backend.ts'
import { breakers } from './breakers.ts'
import { concurrencyKeys } from './concurrency-keys.ts'
import { deadTasks } from './dead-tasks/dead-tasks.ts'
import { deadTaskRequests } from './dead-tasks/requests-by-filter.ts'
import { deadTaskSearches } from './dead-tasks/searches.ts'
import { cancels } from './endings/cancels.ts'
import { compensation } from './endings/compensation.ts'
import { definedFollowUps } from './endings/defined-follow-ups.ts'
import { drains } from './endings/drains.ts'
import { endedTasks } from './endings/ended-tasks.ts'
import { faults } from './endings/faults.ts'
import { filteredCancels } from './endings/filtered-cancels.ts'
import { followUps } from './endings/follow-ups.ts'
import { interruptions } from './endings/interruptions.ts'
import { randomFollowUps } from './endings/random-follow-ups.ts'
import { randomPolicies } from './endings/random-policies.ts'
import { registeredFollowUps } from './endings/registered-follow-ups.ts'
import { retention } from './endings/retention.ts'
import { retryPolicies } from './endings/retry-policies.ts'
import { verdicts } from './endings/verdicts.ts'
import { apiKeyLimits } from './enqueueing/api-key-limits.ts'
import { bulk } from './enqueueing/bulk.ts'
import { expectedStarts } from './enqueueing/expected-starts.ts'
import { idempotencyKeys } from './enqueueing/idempotency.ts'
import { keyLimits } from './enqueueing/key-limits.ts'
import { limits } from './enqueueing/limits.ts'
import { payloads } from './enqueueing/payloads.ts'
import { permitsOfTasks } from './enqueueing/permits.ts'
import { priorities } from './enqueueing/priorities.ts'
import { repeats } from './enqueueing/repeats.ts'
import { turns } from './enqueueing/turns.ts'
import { uniqueKeys } from './enqueueing/unique-keys.ts'
import { uniqueKeysModel } from './enqueueing/unique-keys-model.ts'
import { events } from './events.ts'
import { groupCancels } from './groups/group-cancels.ts'
import { groupEnds } from './groups/group-ends.ts'
import { groupEvents } from './groups/group-events.ts'
import { groupMembers } from './groups/group-members.ts'
import { groupRecords } from './groups/group-records.ts'
import { onlineGroups } from './groups/online-groups.ts'
import { listings } from './listings.ts'
import { orphans } from './orphans.ts'
import { largeInputs } from './pipelines/large-inputs.ts'
import { pipelineBatches } from './pipelines/pipeline-batches.ts'
import { pipelineRuns } from './pipelines/pipeline-runs.ts'
import { pools } from './pools.ts'
import { quarantine } from './quarantine/quarantine.ts'
import { randomKills } from './quarantine/random-kills.ts'
import { records } from './records.ts'
import { schedules } from './schedules.ts'
import { steps } from './steps.ts'
import { waits } from './waits.ts'

interface Suite {
  readonly title: string
  readonly define: (open: OpenBackend) => void
  /**
   * `one queue` if its cases need no keys but a queue's, which are in one slot of a cluster. Those of other queues, of the namespace,
   * of groups and of runs are in other slots.
   */
  readonly within: 'one queue' | 'several slots'
}

const SUITES: readonly Suite[] = [
  { title: 'the record of a task', define: records, within: 'one queue' },
  { title: 'what a task waits for', define: waits, within: 'several slots' },
  { title: 'idempotency keys', define: idempotencyKeys, within: 'one queue' },
  { title: 'expected starts', define: expectedStarts, within: 'one queue' },
  { title: 'unique keys', define: uniqueKeys, within: 'one queue' },
  { title: 'the model of unique keys', define: uniqueKeysModel, within: 'one queue' },
  { title: 'repeated calls', define: repeats, within: 'one queue' },
  { title: 'limits', define: limits, within: 'one queue' },
  { title: 'limits of an API key', define: apiKeyLimits, within: 'one queue' },
  { title: 'enqueueing several tasks at once', define: bulk, within: 'one queue' },
  { title: 'priorities', define: priorities, within: 'one queue' },
  { title: 'turns of concurrency keys', define: turns, within: 'several slots' },
  { title: 'limits of concurrency keys', define: keyLimits, within: 'one queue' },
  { title: 'permits', define: permitsOfTasks, within: 'one queue' },
  { title: 'concurrency keys', define: concurrencyKeys, within: 'several slots' },
  { title: 'the verdict on an attempt', define: verdicts, within: 'one queue' },
  { title: 'retries', define: retryPolicies, within: 'one queue' },
  { title: 'random retry policies', define: randomPolicies, within: 'one queue' },
  { title: 'cancelling a task', define: cancels, within: 'one queue' },
  { title: 'a cancel by filter', define: filteredCancels, within: 'several slots' },
  { title: 'dead tasks', define: deadTasks, within: 'one queue' },
  { title: 'a search for dead tasks', define: deadTaskSearches, within: 'one queue' },
  { title: 'a request to retry or delete dead tasks', define: deadTaskRequests, within: 'several slots' },
  { title: 'follow-up tasks', define: followUps, within: 'several slots' },
  { title: 'compensation', define: compensation, within: 'several slots' },
  { title: 'registered follow-ups', define: registeredFollowUps, within: 'several slots' },
  { title: 'follow-ups of definitions', define: definedFollowUps, within: 'several slots' },
  { title: 'random follow-ups', define: randomFollowUps, within: 'several slots' },
  { title: 'interruptions', define: interruptions, within: 'one queue' },
  { title: 'steps', define: steps, within: 'one queue' },
  { title: 'schedules', define: schedules, within: 'several slots' },
  { title: 'events', define: events, within: 'several slots' },
  { title: 'creating groups', define: groupRecords, within: 'several slots' },
  { title: 'members of groups', define: groupMembers, within: 'several slots' },
  { title: 'ends of groups', define: groupEnds, within: 'several slots' },
  { title: 'cancelling groups', define: groupCancels, within: 'several slots' },
  { title: 'pools for one group', define: onlineGroups, within: 'several slots' },
  { title: 'events of groups', define: groupEvents, within: 'several slots' },
  { title: 'payloads', define: payloads, within: 'one queue' },
  { title: 'listing and waiting', define: listings, within: 'one queue' },
  { title: 'ended tasks', define: endedTasks, within: 'one queue' },
  { title: 'retention', define: retention, within: 'one queue' },
  { title: 'orphans', define: orphans, within: 'several slots' },
  { title: 'pools', define: pools, within: 'one queue' },
  { title: 'drains', define: drains, within: 'one queue' },
  { title: 'faults', define: faults, within: 'one queue' },
  { title: 'quarantine', define: quarantine, within: 'one queue' },
  { title: 'the run of a pipeline', define: pipelineRuns, within: 'several slots' },
  { title: 'large inputs of a pipeline', define: largeInputs, within: 'several slots' },
  { title: 'the batches of a pipeline', define: pipelineBatches, within: 'several slots' },
  { title: 'circuit breakers', define: breakers, within: 'one queue' },
  { title: 'random kills', define: randomKills, within: 'one queue' },
]

interface ConformanceOptions {
  /** Chooses the suites. By default, all of them run. */
  readonly only?: (suite: Pick<Suite, 'title' | 'within'>) => boolean
}

export function brokerConformance(
  name: string,
  open: OpenBackend,
  { only = () => true }: ConformanceOptions = {},
): void {
  for (const suite of SUITES.filter(only)) describe(`${name}: ${suite.title}`, () => suite.define(open))
}
