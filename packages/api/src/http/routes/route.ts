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

/** A request that has only a query. */
export type QueryCall<Schema extends z.ZodType> = Call<unknown, z.output<Schema>>

/** A request about the thing with this id. */
export type IdCall<Query = unknown> = Call<{ readonly id: string }, Query>

/** The query of a request that changes something and has no body. */
export interface ChangeQuery {
  readonly by?: string | undefined
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
  /** What the header Location contains. By default, there is none. */
  readonly location?: string
  readonly headers?: readonly HeaderNote[]
}

interface RouteOptions<P extends z.ZodObject, Q extends z.ZodObject> {
  /** Defaults to `browser` for routes that only read, and to `key` for the others. */
  readonly access?: Access
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
  /** The codes of the problems that this route can return, in addition to those of every route and those of every route with its method. */
  readonly problems: readonly ErrorCode[]
  readonly handle: (call: Call<z.output<P>, z.output<Q>>) => Promise<unknown>
}

interface Place {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** The path in fastify's notation, such as `/v1/tasks/:id`. */
  readonly path: string
  /** The section of the reference that contains the route. */
  readonly tag: 'Tasks' | 'Groups' | 'Pipelines' | 'Events' | 'Schedules' | 'Fleet' | 'Probes'
}

export interface Route extends Omit<RouteOptions<z.ZodObject, z.ZodObject>, 'handle'>, Place {
  readonly access: Access
  readonly handle: (call: Call) => Promise<unknown>
}

const NO_PARAMETERS = z.strictObject({})

/** A caller may send a body with every request but a GET, even if the route does not use it. */
const BODY_PROBLEMS = ['malformed_json', 'payload_too_large', 'unsupported_media_type'] as const

/** Returns the functions that create the rows of one section. They check a handler against the schemas of its row. */
export function routesOf(section: Pick<Place, 'tag'> & Pick<Route, 'headers'>) {
  const add =
    (method: Place['method']) =>
    <P extends z.ZodObject, Q extends z.ZodObject>(path: string, options: RouteOptions<P, Q>): Route => {
      const { handle, problems, access = method === 'GET' ? 'browser' : 'key', ...rest } = options
      const checked: readonly ErrorCode[] =
        access === 'open' ? [] : ['invalid_request', ...(method === 'GET' ? [] : BODY_PROBLEMS), 'unauthorized']
      return {
        ...section,
        ...(access === 'open' ? {} : { query: NO_PARAMETERS }),
        ...rest,
        ...{ method, path, access },
        problems: [...new Set([...checked, ...problems])],
        // The server has already parsed the parameters and the query with the schemas of this row. All rows fit into one table.
        handle: (call) => handle(call as Call<z.output<P>, z.output<Q>>),
      }
    }
  return { get: add('GET'), post: add('POST'), delete: add('DELETE') }
}
