// Defines the dashboard of the API and of Redis.
import type { Dashboard } from '../panel.ts'
import { httpSection } from '../sections/http.ts'
import { redisSection } from '../sections/redis.ts'

export const apiAndRedis: Dashboard = {
  uid: 'bullpen-api-and-redis',
  title: 'Bullpen: API and Redis',
  description: 'Whether the API responds, and whether Redis is reachable, has room and keeps the tasks.',
  variables: [],
  sections: [httpSection, redisSection],
}
