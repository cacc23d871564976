// Defines the conformance suite, which tests the behaviour that every broker and the pools on it must have. The suite runs
// against the Redis broker and the in-memory broker.
import { describe } from 'vitest'
import type { OpenBackend } from './backend.ts'
import { deadTasks } from './dead-tasks/dead-tasks.ts'
import { deadTaskRequests } from './dead-tasks/requests-by-filter.ts'
import { deadTaskSearches } from './dead-tasks/searches.ts'
import { cancels } from './endings/cancels.ts'
import { compensation } from './endings/compensation.ts'
import { definedFollowUps } from './endings/defined-follow-ups.ts'
import { drains } from './endings/drains.ts'
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
import { limits } from './enqueueing/limits.ts'
import { payloads } from './enqueueing/payloads.ts'
import { priorities } from './enqueueing/priorities.ts'
import { repeats } from './enqueueing/repeats.ts'
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
import { pipelineRuns } from './pipelines/pipeline-runs.ts'
import { pools } from './pools.ts'
import { quarantine } from './quarantine/quarantine.ts'
import { randomKills } from './quarantine/random-kills.ts'
import { records } from './records.ts'
import { schedules } from './schedules.ts'
import { steps } from './steps.ts'

export function brokerConformance(name: string, open: OpenBackend): void {
  describe(`${name}: the record of a task`, () => records(open))
  describe(`${name}: idempotency keys`, () => idempotencyKeys(open))
  describe(`${name}: expected starts`, () => expectedStarts(open))
  describe(`${name}: unique keys`, () => uniqueKeys(open))
  describe(`${name}: the model of unique keys`, () => uniqueKeysModel(open))
  describe(`${name}: repeated calls`, () => repeats(open))
  describe(`${name}: limits`, () => limits(open))
  describe(`${name}: limits of an API key`, () => apiKeyLimits(open))
  describe(`${name}: enqueueing several tasks at once`, () => bulk(open))
  describe(`${name}: priorities`, () => priorities(open))
  describe(`${name}: the verdict on an attempt`, () => verdicts(open))
  describe(`${name}: retries`, () => retryPolicies(open))
  describe(`${name}: random retry policies`, () => randomPolicies(open))
  describe(`${name}: cancelling a task`, () => cancels(open))
  describe(`${name}: a cancel by filter`, () => filteredCancels(open))
  describe(`${name}: dead tasks`, () => deadTasks(open))
  describe(`${name}: a search for dead tasks`, () => deadTaskSearches(open))
  describe(`${name}: a request to retry or delete dead tasks`, () => deadTaskRequests(open))
  describe(`${name}: follow-up tasks`, () => followUps(open))
  describe(`${name}: compensation`, () => compensation(open))
  describe(`${name}: registered follow-ups`, () => registeredFollowUps(open))
  describe(`${name}: follow-ups of definitions`, () => definedFollowUps(open))
  describe(`${name}: random follow-ups`, () => randomFollowUps(open))
  describe(`${name}: interruptions`, () => interruptions(open))
  describe(`${name}: steps`, () => steps(open))
  describe(`${name}: schedules`, () => schedules(open))
  describe(`${name}: events`, () => events(open))
  describe(`${name}: creating groups`, () => groupRecords(open))
  describe(`${name}: members of groups`, () => groupMembers(open))
  describe(`${name}: ends of groups`, () => groupEnds(open))
  describe(`${name}: cancelling groups`, () => groupCancels(open))
  describe(`${name}: pools for one group`, () => onlineGroups(open))
  describe(`${name}: events of groups`, () => groupEvents(open))
  describe(`${name}: payloads`, () => payloads(open))
  describe(`${name}: listing and waiting`, () => listings(open))
  describe(`${name}: retention`, () => retention(open))
  describe(`${name}: orphans`, () => orphans(open))
  describe(`${name}: pools`, () => pools(open))
  describe(`${name}: drains`, () => drains(open))
  describe(`${name}: faults`, () => faults(open))
  describe(`${name}: quarantine`, () => quarantine(open))
  describe(`${name}: the run of a pipeline`, () => pipelineRuns(open))
  describe(`${name}: large inputs of a pipeline`, () => largeInputs(open))
  describe(`${name}: random kills`, () => randomKills(open))
}
