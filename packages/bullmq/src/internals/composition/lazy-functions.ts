// Makes BullMQ's scripts create their rarely called functions only when one of them is called.
//
// A script's text defines up to fifty functions, and Redis creates all of them again in every run, although most of them only
// handle parents, deduplication and the removal of old jobs. The functions that nearly every run calls stay where they are. The
// others are moved, with their text unchanged, into one function, which creates them when the first of them is called. This saves
// Redis about 3 µs for each task.
//
// The text is rearranged only if nothing stands between its functions, so that each function still sees the same variables. Tests
// check the assumptions about how BullMQ writes its scripts (watched-commands.test.ts).

/**
 * The functions that nearly every run of each script calls. If a name is missing from these lists, the scripts take longer, but
 * nothing else changes.
 */
const ADDS = ['getOrSetMaxEvents', 'storeJob']
const COMMON_IN_ADDS: Readonly<Record<string, readonly string[]>> = {
  addStandardJob: [...ADDS, 'addBaseMarkerIfNeeded', 'addJobInTargetList', 'isQueuePausedOrMaxed'],
  addPrioritizedJob: [
    ...ADDS,
    'addBaseMarkerIfNeeded',
    'addJobWithPriority',
    'getPriorityScore',
    'isQueuePausedOrMaxed',
  ],
  addDelayedJob: [...ADDS, 'addDelayedJob', 'addDelayMarkerIfNeeded', 'getDelayedScore', 'getNextDelayedTimestamp'],
  addParentJob: ADDS,
}

/** The functions that nearly every fetch and every end of an attempt calls, even if the queue is empty. */
const ENDS = [
  'addBaseMarkerIfNeeded',
  'fetchNextJob',
  'getNextDelayedTimestamp',
  'getOrSetMaxEvents',
  'getQueueMetadata',
  'getRateLimitTTL',
  'moveJobFromPrioritizedToActive',
  'prepareJobForProcessing',
  'promoteDelayedJobs',
  'removeDeduplicationKeyIfNeededOnFinalization',
  'removeLock',
  'trimEvents',
  'updateJobFields',
]

const DELAYS = [...ENDS, 'addDelayMarkerIfNeeded', 'getDelayedScore']

function commonOf(script: string): readonly string[] {
  return COMMON_IN_ADDS[script] ?? (script === 'moveToDelayed' ? DELAYS : ENDS)
}

/** Matches a function at the outermost level of a script. BullMQ indents everything inside a function. */
const FUNCTION = /^local (?:function (\w+)\s*\(|(\w+)\s*=\s*function\s*\()[\s\S]*?^end$\n?/gm

/**
 * Returns the script's text with its rarely called functions moved into one function. If there are only a few of them, returns
 * the text unchanged.
 */
export function withLazyFunctions({ name, content }: { readonly name: string; readonly content: string }): string {
  const common = commonOf(name)
  const text = withoutComments(content)
  const functions = [...text.matchAll(FUNCTION)]
  const seldom = functions.filter((each) => !common.includes(nameOf(each)))
  const [first, last] = [functions[0], functions.at(-1)]
  if (seldom.length < 3 || first === undefined || last === undefined || !standTogether(text, functions)) return text
  const before = text.slice(0, first.index)
  const after = text.slice(last.index + last[0].length)
  const names = seldom.map(nameOf)
  const kept = functions.filter((each) => common.includes(nameOf(each))).map(([lua]) => lua)
  return `${before}
local create_seldom, seldom
local function call_seldom(name, ...)
  seldom = seldom or create_seldom()
  return seldom[name](...)
end
${withSeldomCalls(kept.join(''), names)}
function create_seldom()
${seldom.map(([lua]) => lua).join('')}
return { ${names.map((name) => `${name} = ${name}`).join(', ')} }
end
${withSeldomCalls(after, names)}`
}

function nameOf([, declared, assigned]: RegExpExecArray): string {
  return declared ?? assigned ?? ''
}

/** Returns whether nothing stands between the functions. */
function standTogether(text: string, functions: readonly RegExpExecArray[]): boolean {
  return functions.every((each, i) => {
    const next = functions[i + 1]
    return next === undefined || text.slice(each.index + each[0].length, next.index).trim() === ''
  })
}

function withSeldomCalls(lua: string, names: readonly string[]): string {
  const calls = new RegExp(`(?<!function )\\b(${names.join('|')})\\s*\\((\\s*\\))?`, 'g')
  return lua.replaceAll(
    calls,
    (_, name: string, end?: string) => `call_seldom('${name}'${end === undefined ? ', ' : ')'}`,
  )
}

/** Removes a script's comments, because a comment may look like code. */
function withoutComments(script: string): string {
  return script.replaceAll(/--\[\[[\s\S]*?\]\]/g, '').replaceAll(/--.*$/gm, '')
}
