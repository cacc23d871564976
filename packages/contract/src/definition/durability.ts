// Defines when an enqueue is acknowledged to its caller.
import { z } from 'zod'

export const DURABILITIES = ['primary', 'replicated'] as const

/**
 * When an enqueue is acknowledged:
 *
 * - `primary`: once the Redis server that accepts writes has stored the task. A failover to a replica that lags behind may lose it.
 * - `replicated`: once a replica of that server has the task, too. If none confirms it in time, the call fails with `not_replicated`.
 */
export type Durability = (typeof DURABILITIES)[number]

export const durabilitySchema = z.enum(DURABILITIES)
