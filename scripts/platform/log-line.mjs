// Decides which lines of a child's log the terminal shows, and in which form. The log file contains all lines.
const PROBLEMS = ['warn', 'error', 'fatal']

/**
 * Returns whether a handler logged the line. A handler's lines contain the task and the attempt, whereas the engine's own lines
 * about an attempt also contain the queue.
 */
const isFromHandler = ({ task, attempt, queue }) => task !== undefined && attempt !== undefined && queue === undefined

/**
 * Returns the short form of a line for the terminal, or undefined for a line that belongs only in the log file.
 * @param {string} line as the child wrote it
 * @param {'stdout' | 'stderr'} stream
 * @param {{ handlers?: boolean }} [options] if `handlers` is set, lines that handlers log at level info are shown too
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
