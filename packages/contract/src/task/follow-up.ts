// Defines what is stored of a follow-up task until it is enqueued: a template, in a line of text.
//
// A template contains everything that adding the task needs, because the process that adds the task knows neither the definition
// nor the codec. Only the id and the times are missing: they are determined when the task to follow has ended. The follow-ups of
// one task are lines, each a letter and a template as JSON, which contains no line break. A follow-up that a handler has registered
// also has its identity and a blank in between, so that registering it again replaces the line. Scripts in Redis choose among the
// lines by their letters and never parse the JSON (packages/bullmq/src/store/lua/includes/outbox.lua).
import { z } from 'zod'
import type { Envelope } from './envelope.ts'

/** The ends after which a follow-up task is enqueued: completed; dead or expired; any end. */
export const FOLLOW_UP_KINDS = ['success', 'failure', 'end'] as const

export type FollowUpKind = (typeof FOLLOW_UP_KINDS)[number]

/** The first letter of a line. */
export const FOLLOW_UP_LETTERS = { success: 's', failure: 'f', end: 'e' } as const satisfies Record<
  FollowUpKind,
  string
>

/** How many follow-ups one task may have. */
export const MAX_FOLLOW_UPS = 16
/** The largest total size of one task's lines, in bytes. */
export const MAX_FOLLOW_UP_BYTES = 65_536
/** How deeply the follow-ups of one request may be nested. */
export const MAX_NESTED_FOLLOW_UPS = 8

/** A task that is enqueued when another one has ended. All times are in ms. */
export interface StoredTemplate {
  readonly queue: string
  readonly task: string
  /** The envelope to store (./envelope.ts), as a string. */
  readonly data: string
  readonly attempts: number
  readonly priority: number
  readonly delayMs?: number | undefined
  /** The time limit for the first start, from the time when the task is ready. */
  readonly queueMs?: number | undefined
  readonly tags?: readonly string[] | undefined
  /** How many events the stream of the task's queue keeps. Undefined if the task has no events. */
  readonly events?: number | undefined
  /** The task's concurrency key and weight, if its queue is fair. */
  readonly turn?: { readonly key: string; readonly weight: number } | undefined
  /** What the task needs to start. */
  readonly needs?: readonly { readonly limiter: string; readonly amount: number }[] | undefined
  /** The services on whose circuit breakers the task depends. */
  readonly services?: readonly string[] | undefined
  /** The API key for which the task is counted. */
  readonly apiKey?: string | undefined
  /** The follow-ups of this task itself. */
  readonly followUps?: readonly StoredFollowUp[] | undefined
}

export interface StoredFollowUp {
  readonly on: FollowUpKind
  readonly template: StoredTemplate
  /** The definition's name and the key under which a handler has registered the follow-up. Undefined for those of a call. */
  readonly identity?: string | undefined
}

export const storedTemplateSchema: z.ZodType<StoredTemplate> = z.object({
  queue: z.string(),
  task: z.string(),
  data: z.string(),
  attempts: z.int().positive(),
  priority: z.int().nonnegative(),
  delayMs: z.number().positive().optional(),
  queueMs: z.number().positive().optional(),
  tags: z.array(z.string()).optional(),
  events: z.int().positive().optional(),
  turn: z.object({ key: z.string(), weight: z.number().positive() }).optional(),
  needs: z.array(z.object({ limiter: z.string(), amount: z.int().positive() })).optional(),
  services: z.array(z.string()).optional(),
  apiKey: z.string().optional(),
  followUps: z
    .array(z.object({ on: z.enum(FOLLOW_UP_KINDS), template: z.lazy(() => storedTemplateSchema) }))
    .optional(),
})

/**
 * The first letter of a line with a compensation that is still to come. A compensation has such a line for each one that follows it. At
 * its end, the last of these lines becomes the next compensation, which gets the others.
 */
export const NEXT_LETTER = 'n'

/** Returns the lines of a compensation after which these are to come. The last one comes first. */
export function encodeNext(templates: readonly StoredTemplate[]): string {
  return templates.map((template) => NEXT_LETTER + JSON.stringify(template)).join('\n')
}

export function decodeNext(lines: string): readonly StoredTemplate[] {
  return lines.split('\n').flatMap((line) => (line[0] === NEXT_LETTER ? (parseTemplate(line.slice(1)) ?? []) : []))
}

/** Returns the lines of a task with these follow-ups, which are '' if there are none. */
export function encodeLines(followUps: readonly StoredFollowUp[]): string {
  return followUps
    .map(({ on, template, identity }) => lineHead(FOLLOW_UP_LETTERS[on], identity) + JSON.stringify(template))
    .join('\n')
}

/** Returns what comes before the template in a line. */
function lineHead(letter: string, identity: string | undefined): string {
  return identity === undefined ? letter : `${letter}${identity} `
}

/** Reads the lines of a task. Lines that another version of Bullpen has written are left out. */
export function decodeLines(lines: string): readonly StoredFollowUp[] {
  return lines.split('\n').flatMap((line) => {
    const [, letter, identity, text = ''] = LINE.exec(line) ?? []
    const on = FOLLOW_UP_KINDS.find((kind) => FOLLOW_UP_LETTERS[kind] === letter)
    // Most tasks have no lines, and a text that is not JSON costs an error.
    const template = text === '' ? undefined : parseTemplate(text)
    if (on === undefined || template === undefined) return []
    return [identity === undefined ? { on, template } : { on, template, identity }]
  })
}

const LINE = /^([a-z])(?:([^{ ]+) )?(\{.*)$/

/** Returns undefined if the text is not a template. */
export function parseTemplate(text: string): StoredTemplate | undefined {
  try {
    return storedTemplateSchema.parse(JSON.parse(text))
  } catch {
    return undefined
  }
}

/**
 * Returns the queues of those of these follow-ups that a call has named, at any depth. Those of a definition have a depth in their
 * envelope, and those that a handler has registered have an identity.
 */
export function namedQueues(followUps: readonly StoredFollowUp[]): readonly string[] {
  return followUps
    .filter(({ identity, template }) => identity === undefined && !hasDepth(template))
    .flatMap(({ template }) => [template.queue, ...namedQueues(template.followUps ?? [])])
}

function hasDepth({ data }: StoredTemplate): boolean {
  try {
    return (JSON.parse(data) as Pick<Envelope, 'depth'>).depth !== undefined
  } catch {
    return false
  }
}
