// Builds the text that the platform prints when it is up. The text shows where everything is, and commands to try.
import { join } from 'node:path'
import { styleText } from 'node:util'

const strong = (text) => styleText('bold', text, { stream: process.stdout })
const faint = (text) => styleText('dim', text, { stream: process.stdout })

const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`

/**
 * Returns a one-line shell command that enqueues a task or starts a pipeline, waits up to `wait` seconds for its result and prints the
 * result.
 */
export function curlLine({ apiUrl, key, task, pipeline, input, wait }) {
  const auth = `-H 'Authorization: Bearer ${key}'`
  const body = quoted(JSON.stringify({ task, pipeline, input }))
  const url = `${apiUrl}/v1/${pipeline ? 'runs' : 'tasks'}`
  const start = `curl -sS ${auth} -H 'Content-Type: application/json' -d ${body} ${url}`
  const id = `sed 's/^{"id":"\\([^"]*\\)".*/\\1/'`
  return `${start} | ${id} | xargs -I@ curl -sS ${auth} '${url}/@?wait=${wait}'`
}

/** Returns a command that does the same with Bullpen's CLI, which reads the address and the API key from the environment. */
const commandLine = ({ task, pipeline, input, wait }) =>
  `npx --no -- bullpen ${pipeline ? `runs start ${pipeline}` : `enqueue ${task}`} ${quoted(JSON.stringify(input))} --wait ${wait}s`

/** @param {{ apiUrl: string, key: string, redisUrl: string, api: { metrics: string }, redis: { origin: string },
 *   prometheus?: { url: string }, workers: { name: string, url: string }[], filesRoots: string[], root: string, logs: string }} where */
export function banner({ apiUrl, key, redisUrl, api, redis, prometheus, workers, filesRoots, root, logs }) {
  const origin = { env: 'REDIS_URL', binary: 'private, data in .bullpen/redis', docker: 'private, in a container' }[
    redis.origin
  ]
  const places = [
    ['API', apiUrl],
    ['API reference', `${apiUrl}/board/login?key=${key}&next=/reference`],
    ['OpenAPI', `${apiUrl}/openapi.json`],
    ['Bull Board', `${apiUrl}/board/login?key=${key}`],
    ['Metrics', api.metrics],
    ...workers.map(({ name, url }) => ['', `${url}/metrics  ${faint(name)}`]),
    ...(prometheus === undefined ? [] : [['Prometheus', prometheus.url]]),
    ['Redis', `${new URL(redisUrl).host}  ${faint(origin)}`],
    ['Logs', logs],
  ]
  const receipt = { orderId: 'A-1', to: 'fail@example.com', total: '12.00', currency: 'EUR' }
  const examples = [
    ['A task that succeeds', { task: 'math.factorial', input: { n: 50 }, wait: 10 }],
    ['A task that fails and is retried', { task: 'receipt.send', input: receipt, wait: 2 }],
    ...(filesRoots.includes(root)
      ? [
          [
            'A task that reads a file',
            { task: 'files.digest', input: { path: join(root, 'package-lock.json') }, wait: 10 },
          ],
          [
            'A pipeline that reads every file of a directory',
            { pipeline: 'md5-all-bounded', input: { directory: join(root, 'docs/adr') }, wait: 10 },
          ],
        ]
      : []),
  ]
  return [
    '',
    strong('Bullpen is up.'),
    '',
    ...places.map(([name, place]) => `  ${name.padEnd(15)}${place}`),
    ...examples.flatMap(([title, call]) => ['', `${title}:`, '', `  ${curlLine({ apiUrl, key, ...call })}`]),
    '',
    'The same from the command line:',
    '',
    `  export BULLPEN_API=${apiUrl} BULLPEN_KEY=${key}`,
    ...examples.map(([, call]) => `  ${commandLine(call)}`),
    '',
    faint('Ctrl-C drains the workers and stops everything.'),
    '',
  ].join('\n')
}
