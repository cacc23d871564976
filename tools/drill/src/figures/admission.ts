// The figures of callers that repeat their requests, of queues that are full, and of a full Redis.

export interface AdmissionFigures {
  /** Accepted responses to calls with an idempotency key, and how many of these differ from the key's first response. */
  readonly responses?: number
  readonly differentResponses?: number
  /** Responses beyond each key's first one that are not marked as repeated. */
  readonly firstResponsesRepeated?: number
  /** Callers that gave up without an accepted response. */
  readonly unanswered?: number
  /** Requests after which the caller did not know whether the task was stored. */
  readonly unknownOutcomes?: number
  /** The highest number of tasks that were waiting or scheduled at the same time. */
  readonly mostTasks?: number
  /** Tasks that were rejected or dropped because the queue was full. */
  readonly refused?: number
  /** Stored tasks whose callers did not learn whether they are stored. */
  readonly storedUnknown?: number
  /** Stored tasks whose callers had a response that says something else. */
  readonly storedUnexplained?: number
  /** Stored tasks whose callers had a response that leaves open whether they are stored, and does not name their id. */
  readonly storedUnnamed?: number
  /** Callers whose task was stored after that of a caller who had come later to the same process. */
  readonly overtaken?: number
  /** Time from the request that made room to the response to the next caller whose task was stored. Infinite if none was stored in time. */
  readonly roomP50Ms?: number | undefined
  readonly roomP99Ms?: number | undefined
  /** The largest share of `maxmemory` that Redis has used before something other than Bullpen filled it, in percent. */
  readonly memoryPercent?: number
  /** Responses with the status 503 to callers over HTTP, because Redis was full. */
  readonly refusedOverHttp?: number
  /** Bullpen's commands that Redis refused because it was full. */
  readonly refusedByRedis?: number
  /** Time from the moment when Redis's memory was freed until every accepted task had ended. */
  readonly doneAfterRoomMs?: number
}
