// Defines the parts of requests that several routes share.
import { z } from 'zod'

export const taskIdParams = z.object({ id: z.string().describe("The task's id.") })

/** The headers of a request about something that exists already. */
export const REQUEST_ID_HEADERS = [
  {
    name: 'X-Request-Id',
    description: 'An id for the request. It is returned with the response and appears in the logs.',
  },
]

/** The headers of a request that stores its id and its trace with a task. */
export const ORIGIN_HEADERS = [
  {
    name: 'X-Request-Id',
    description:
      'An id for the request. It is returned with the response and stored with the task, and it appears in the ' +
      'logs.',
  },
  {
    name: 'traceparent',
    description:
      'The W3C Trace Context that the task belongs to. It is stored with the task and passed on to its handler, its child tasks and its ' +
      "follow-ups. Its trace id is used as the request's id if there is no X-Request-Id.",
  },
  {
    name: 'tracestate',
    description: 'The tracestate that belongs to the traceparent, of at most 512 characters.',
  },
]
