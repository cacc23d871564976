// Counts the streams of events that readers have open, for the metrics.

/** What a stream of events is about. */
export const STREAM_SUBJECTS = ['task', 'queue', 'tag', 'group'] as const

export type StreamSubject = (typeof STREAM_SUBJECTS)[number]

export interface OpenStreams {
  /** Counts a stream until the returned function is called. */
  add(subject: StreamSubject): () => void
  count(subject: StreamSubject): number
}

export function createOpenStreams(): OpenStreams {
  const counts = new Map<StreamSubject, number>()
  const change = (subject: StreamSubject, by: number): void => {
    counts.set(subject, (counts.get(subject) ?? 0) + by)
  }
  return {
    add(subject) {
      change(subject, 1)
      return () => change(subject, -1)
    },
    count: (subject) => counts.get(subject) ?? 0,
  }
}
