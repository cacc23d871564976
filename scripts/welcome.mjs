// What the platform says once it is up: where things are, and three lines to try.
import { join } from 'node:path'
import { styleText } from 'node:util'

const strong = (text) => styleText('bold', text, { stream: process.stdout })
const faint = (text) => styleText('dim', text, { stream: process.stdout })

const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`

/** One line of curl and sed that enqueues a task, then waits up to `wait` s for its end and prints it. */
export function curlLine({ apiUrl, key, task, input, wait }) {
  const auth = `-H 'Authorization: Bearer ${key}'`
  const body = quoted(JSON.stringify({ task, input }))
  const enqueue = `curl -sS ${auth} -H 'Content-Type: application/json' -d ${body} ${apiUrl}/v1/tasks`
  const id = `sed 's/.*"id":"\\([^"]*\\)".*/\\1/'`
  return `${enqueue} | ${id} | xargs -I@ curl -sS ${auth} '${apiUrl}/v1/tasks/@?wait=${wait}'`
}

/** @param {{ apiUrl: string, key: string, redisUrl: string, api: { metrics: string }, redis: { origin: string },
 *   workers: { name: string, url: string }[], filesRoots: string[], root: string, logs: string }} where */
export function welcome({ apiUrl, key, redisUrl, api, redis, workers, filesRoots, root, logs }) {
  const origin = { env: 'REDIS_URL', binary: 'ours, in .bullpen/redis', docker: 'a container of ours' }[redis.origin]
  const places = [
    ['API', apiUrl],
    ['API reference', `${apiUrl}/board/login?key=${key}&next=/reference`],
    ['OpenAPI', `${apiUrl}/openapi.json`],
    ['Bull Board', `${apiUrl}/board/login?key=${key}`],
    ['Metrics', api.metrics],
    ...workers.map(({ name, url }) => ['', `${url}/metrics  ${faint(name)}`]),
    ['Redis', `${new URL(redisUrl).host}  ${faint(origin)}`],
    ['Logs', logs],
  ]
  const receipt = { orderId: 'A-1', to: 'fail@example.com', total: '12.00', currency: 'EUR' }
  const lines = [
    ['A task that succeeds', { task: 'math.factorial', input: { n: 50 }, wait: 10 }],
    ['One that fails and is tried again', { task: 'receipt.send', input: receipt, wait: 2 }],
    [
      'One to watch',
      {
        task: 'files.digest-tree',
        input: { path: filesRoots.includes(root) ? join(root, 'node_modules') : filesRoots[0] },
        wait: 30,
      },
    ],
  ]
  return [
    '',
    strong('Bullpen is up.'),
    '',
    ...places.map(([name, place]) => `  ${name.padEnd(15)}${place}`),
    ...lines.flatMap(([title, call]) => ['', `${title}:`, '', `  ${curlLine({ apiUrl, key, ...call })}`]),
    '',
    faint('Ctrl-C drains the workers and ends everything.'),
    '',
  ].join('\n')
}
