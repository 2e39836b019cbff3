/**
 * Ports from 1024 on that users' URLs may not name: their usual services may read an HTTP request as commands, or give
 * control of a machine. The WHATWG's "bad ports", and common databases, brokers, caches and remote desktops.
 */
export const refusedPorts: ReadonlySet<number> = new Set([
  1080, // SOCKS
  1433, // SQL Server
  1434,
  1521, // Oracle
  1719, // H.323
  1720,
  1723, // PPTP
  1883, // MQTT
  2049, // NFS
  2181, // ZooKeeper
  2375, // Docker
  2376,
  2379, // etcd
  2380,
  3268, // LDAP global catalogue
  3269,
  3306, // MySQL
  3389, // RDP
  3659,
  4045,
  4190, // ManageSieve
  4222, // NATS
  5060, // SIP
  5061,
  5432, // PostgreSQL
  5671, // AMQP
  5672,
  5900, // VNC
  5984, // CouchDB
  5985, // WinRM
  5986,
  6000, // X11
  6222, // NATS routes
  6379, // Redis
  6380,
  6432, // PgBouncer
  6566,
  6665, // IRC
  6666,
  6667,
  6668,
  6669,
  6679,
  6697,
  8222, // NATS monitoring
  8500, // Consul
  8883, // MQTT over TLS
  9042, // Cassandra
  9092, // Kafka
  9200, // Elasticsearch
  9300,
  10080,
  10250, // kubelet
  10255,
  11211, // memcached
  26257, // CockroachDB
  26379, // Redis Sentinel
  27017, // MongoDB
  27018,
  27019,
])
