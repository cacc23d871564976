// Describes the keys of a namespace: those of its leader and its fleet, and those that all of its queues share.
import {
  enqueueRateKey,
  type FleetKeys,
  fleetKeys,
  groupsKey,
  type LeaderKeys,
  leaderKeys,
  producersKey,
  runsKey,
  scheduleEditionsKey,
} from '../../keys.ts'
import { type KeyRow, scored } from './key-row.ts'

/** Returns the keys of a namespace, all of which share one hash tag. The channels are left out. */
export function namespaceKeys(namespace: string) {
  const { channel: _, ...leader } = leaderKeys(namespace)
  const { base: __, notifications: ___, responses: ____, ...fleet } = fleetKeys(namespace)
  return {
    /** The prefix of all these keys. */
    base: `{${namespace}}:`,
    ...leader,
    ...fleet,
    groups: groupsKey(namespace),
    runs: runsKey(namespace),
    scheduleEditions: scheduleEditionsKey(namespace),
    producers: producersKey(namespace),
    enqueueRate: (apiKeyName: string) => enqueueRateKey(namespace, apiKeyName),
  }
}

export type NamespaceKeys = ReturnType<typeof namespaceKeys>

type Row = KeyRow<NamespaceKeys>

const LEADER_ROWS = {
  schema: { type: 'string', holds: "the namespace's schema version", ends: 'kept; a number' },
  lease: {
    type: 'string',
    holds: 'the process that leads',
    owner: 'leader',
    ends: 'expires 3 s after the leader has renewed it for the last time',
    expires: true,
  },
  fencing: { type: 'string', holds: 'the fencing number of the newest leader', ends: 'kept; a number' },
  registry: {
    type: 'hash',
    holds: "the namespace's queues, with their retention",
    ends: 'kept; one field for each queue',
  },
} as const satisfies Record<Exclude<keyof LeaderKeys, 'channel'>, Row>

const FLEET_ROWS = {
  heartbeats: {
    type: 'sorted set',
    holds: 'the workers, by last heartbeat',
    ends: 'the heartbeats of other workers remove a worker that has been silent for a minute',
  },
  served: {
    type: 'sorted set',
    holds: 'the queues, by when a worker last served them',
    ends: 'heartbeats remove a queue that no worker has served for 30 days',
  },
  worker: {
    type: 'hash',
    parts: ['worker'],
    holds: 'the status of a worker',
    owner: 'worker',
    ends: 'expires a minute after the last heartbeat',
    expires: true,
    owned: ({ heartbeats }, id) => [scored(heartbeats, id)],
  },
  inbox: {
    type: 'sorted set',
    parts: ['worker'],
    holds: 'the commands to which a worker has not responded',
    owner: 'worker',
    ends: 'deleted with the worker; expires seven days after the last command',
    expires: true,
  },
  command: {
    type: 'hash',
    parts: ['command'],
    holds: 'a command and the responses of its workers',
    owner: 'command',
    ends: 'expires after seven days',
    expires: true,
  },
  commands: { type: 'sorted set', holds: 'the ids of all commands', ends: 'the next command removes old ids' },
  unapplied: {
    type: 'sorted set',
    holds: 'the commands whose queue settings may not have been applied',
    ends: 'a member is removed when its settings are applied, or with its command',
  },
  settingsRevision: { type: 'string', holds: "the number of changes of the queues' settings", ends: 'kept; a number' },
  logLevel: {
    type: 'string',
    holds: 'the log level that a command has set for all processes',
    expires: true,
    ends: 'expires when the change ends, or is deleted by the level `configured`',
  },
  enqueueRates: {
    type: 'hash',
    holds: 'the enqueue rates that commands have set',
    ends: 'kept; one field for each name of an API key',
  },
} as const satisfies Record<Exclude<keyof FleetKeys, 'base' | 'notifications' | 'responses'>, Row>

export const NAMESPACE_ROWS = {
  ...LEADER_ROWS,
  ...FLEET_ROWS,
  groups: {
    type: 'sorted set',
    holds: 'the groups at which the leader has to look, by when',
    ends: 'the leader removes a group that has ended',
  },
  runs: {
    type: 'sorted set',
    holds: 'the runs of pipelines at which the leader has to look, by when',
    ends: 'the leader removes a run that has ended',
  },
  scheduleEditions: {
    type: 'hash',
    holds: 'the definitions of schedules that running processes declare, and those that were stored',
    ends: 'expires 30 days after a process has last declared a schedule',
    expires: true,
  },
  producers: {
    type: 'sorted set',
    holds: "the producers that share a single server's memory",
    owner: 'producer',
    ends: 'expires when no producer is left',
    expires: true,
  },
  enqueueRate: {
    type: 'string',
    parts: ['api key'],
    holds: "an API key's bucket of tokens over all queues",
    owner: 'API key',
    ends: 'expires when the bucket is full',
    expires: true,
  },
} as const satisfies Record<Exclude<keyof NamespaceKeys, 'base'>, Row>
