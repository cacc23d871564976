// Follows what a source yields, and checks whether a source that is run again continues where it was.
//
// Without cursors, the source yields its items again, and a digest of them shows whether they are the same. With cursors, the source has to
// resume after the last item that was emitted. The digest of the first cursor is then stored in place of the digest of the items: a source
// that ignores its cursor yields the first item again, and a source that does not skip the item at its cursor yields that item again. Other
// cursors are not stored, and cursors are opaque, so a source that resumes at another earlier item is noticed only at its cursor.
import { TaskError } from '@bullpen/contract'
import type { RunAccess, SourcePosition } from '../ports/broker/runs.ts'
import type { Sha256 } from '../task/digest.ts'

const DIGEST_DIGITS = 32
const MAX_CURSOR_CHARACTERS = 4_096
const MAX_SHOWN_CHARACTERS = 100

export interface SourceTrace {
  /** The digest and the cursor after the last item, as they are stored. */
  readonly digest: string
  readonly cursor: string
  /**
   * Adds an item that the source has yielded. `cursor` is undefined if the item has none.
   *
   * @throws TaskError `invalid_item` if the cursor is too long or missing, or `source_changed` if it was stored before.
   */
  add(item: unknown, cursor: unknown): void
}

export interface SourceTraceOptions {
  /** The name of the source. */
  readonly name: string
  readonly access: Pick<RunAccess, 'encode' | 'decode'>
  readonly sha256: Sha256
  /** What is stored of the items before. */
  readonly opened: Pick<SourcePosition, 'digest' | 'cursor'>
}

export function createSourceTrace({ name, access, sha256, opened }: SourceTraceOptions): SourceTrace {
  let { cursor } = opened
  let digest = cursor === '' ? '' : opened.digest
  /** The cursor with which the source was run again. A codec may encode it differently each time. */
  const resumedAt = cursor === '' ? undefined : JSON.stringify(access.decode(cursor))
  const digestOf = (text: string): string => Buffer.from(sha256(text)).toString('hex').slice(0, DIGEST_DIGITS)

  const checkIsNew = (json: string): void => {
    if (resumedAt === undefined || (json !== resumedAt && digestOf(json) !== opened.digest)) return
    throw new TaskError(
      'source_changed',
      `${name} was run again with the cursor ${shown(resumedAt)} and has yielded the item with the cursor ${shown(json)} again; yield only the items after the cursor`,
      { retryable: false },
    )
  }

  return {
    get digest() {
      return digest
    },
    get cursor() {
      return cursor
    },
    add(item, own) {
      if (own === undefined) {
        if (cursor !== '') throw invalidItem(`${name} has yielded an item without a cursor after one with a cursor`)
        digest = digestOf(digest + JSON.stringify(item))
        return
      }
      const encoded = access.encode(own)
      if (encoded.length > MAX_CURSOR_CHARACTERS) {
        throw invalidItem(
          `a cursor of ${name} takes ${encoded.length} characters as JSON; expected at most ${MAX_CURSOR_CHARACTERS}`,
        )
      }
      const json = JSON.stringify(own)
      checkIsNew(json)
      if (cursor === '') digest = digestOf(json)
      cursor = encoded
    },
  }
}

export function invalidItem(message: string): TaskError {
  return new TaskError('invalid_item', message, { retryable: false })
}

function shown(json: string): string {
  return json.length <= MAX_SHOWN_CHARACTERS ? json : `${json.slice(0, MAX_SHOWN_CHARACTERS)}…`
}
