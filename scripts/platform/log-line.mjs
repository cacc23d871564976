// Decides what the terminal shows of a child's log, and in which form. Everything is in the log file.
const PROBLEMS = ['warn', 'error', 'fatal']

/** Lines that a handler logs carry its task and attempt; the engine's own lines about an attempt name the queue too. */
const isFromHandler = ({ task, attempt, queue }) => task !== undefined && attempt !== undefined && queue === undefined

/**
 * The short form of a line for the terminal; undefined for a line that belongs in the log file only.
 * @param {string} line as the child wrote it
 * @param {'stdout' | 'stderr'} stream
 * @param {{ handlers?: boolean }} [options] `handlers`: also show what handlers log at level info
 * @returns {string | undefined}
 */
export function terminalLine(line, stream, { handlers = false } = {}) {
  if (line.trim() === '') return undefined
  let entry
  try {
    entry = JSON.parse(line)
  } catch {
    return stream === 'stderr' ? line : undefined // a stack trace or a warning from Node
  }
  const isShown = PROBLEMS.includes(entry?.level) || (handlers && entry?.level === 'info' && isFromHandler(entry))
  if (!isShown) return undefined
  const { level, msg, err, id, task, method, route, status } = entry
  const about = [task, id].filter((part) => typeof part === 'string').join(' ')
  const cause = err?.message && err.message !== msg ? `: ${err.message}` : ''
  const request = route === undefined ? '' : `: ${method} ${route} ${status}`
  return [level, about, `${msg ?? ''}${request}${cause}`].filter(Boolean).join('  ')
}
