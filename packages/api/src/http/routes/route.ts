// Defines a row of the route table: what a route accepts and returns, who may call it, and its handler.
import type { ErrorCode } from '@bullpen/contract'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Access } from '../../auth/access.ts'

export interface Call<Params = unknown, Query = unknown> {
  readonly params: Params
  readonly query: Query
  /** The body, which has been validated against the route's schema but is still as the caller sent it. */
  readonly body: unknown
  readonly request: FastifyRequest
  readonly reply: FastifyReply
}

export interface HeaderNote {
  readonly name: string
  readonly description: string
}

export interface RouteResponse {
  readonly description: string
  readonly schema: z.ZodType
  /** Defaults to JSON. */
  readonly contentType?: 'text/event-stream'
  readonly headers?: readonly HeaderNote[]
}

interface RouteOptions<P extends z.ZodObject, Q extends z.ZodObject> {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** The path in fastify's notation, such as `/v1/tasks/:id`. */
  readonly path: string
  readonly access: Access
  /** The section of the reference that contains the route. */
  readonly tag: 'Tasks' | 'Groups' | 'Pipelines' | 'Events' | 'Schedules' | 'Fleet' | 'Probes'
  readonly operationId: string
  readonly summary: string
  readonly description?: string
  readonly params?: P
  /** Defaults to no parameters. Unknown ones are rejected, except by the probes, whose callers may add their own. */
  readonly query?: Q
  readonly body?: z.ZodType
  /** The schema against which the server checks the body, if the handler checks the rest of the body. Defaults to `body`. */
  readonly checkedBody?: z.ZodType
  /** The maximum size of the body, in bytes. Defaults to the server's limit. */
  readonly bodyLimit?: number
  /** Defaults to true. */
  readonly bodyRequired?: boolean
  readonly headers?: readonly HeaderNote[]
  readonly responses: Readonly<Record<number, RouteResponse>>
  /** The codes of the problems that this route can return, in addition to those that any route can return. */
  readonly problems: readonly ErrorCode[]
  readonly handle: (call: Call<z.output<P>, z.output<Q>>) => Promise<unknown>
}

export interface Route extends Omit<RouteOptions<z.ZodObject, z.ZodObject>, 'handle'> {
  readonly handle: (call: Call) => Promise<unknown>
}

const NO_PARAMETERS = z.strictObject({})

/**
 * Checks the types of a handler against the schemas of its row, and then erases these types so that all rows fit into one
 * table.
 */
export function route<P extends z.ZodObject, Q extends z.ZodObject>(options: RouteOptions<P, Q>): Route {
  const { handle, ...rest } = options
  return {
    ...(options.access === 'open' ? {} : { query: NO_PARAMETERS }),
    ...rest,
    // The server has already parsed both of them with the schemas of this row.
    handle: (call) => handle(call as Call<z.output<P>, z.output<Q>>),
  }
}
